// Browsers want the name `.js`, but Debian's node only treats such a file as a module if a package says so.
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const source = fileURLToPath(new URL("../../Sources/RelayServer/Live/belfry-live.js", import.meta.url));
const folder = mkdtempSync(path.join(os.tmpdir(), "belfry-live-client-"));
const copy = path.join(folder, "belfry-live.mjs");
copyFileSync(source, copy);
const loaded = await import(pathToFileURL(copy));
rmSync(folder, { recursive: true });
export const { LiveClient, LiveError, LiveMachine, recordKey } = loaded;
