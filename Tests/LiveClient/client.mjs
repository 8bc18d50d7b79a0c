// Debian's node takes a file that is named `.js`, as browsers want it, for no module unless a package says so.
import { readFile } from "node:fs/promises";

const source = await readFile(new URL("../../Sources/RelayServer/Live/belfry-live.js", import.meta.url));
const loaded = await import(`data:text/javascript;base64,${source.toString("base64")}`);
export const { LiveClient, LiveError, LiveMachine, recordKey } = loaded;
