// Every view has an address: /console/<page>?container=…&environment=…&…

/** The pages, in the order of the menu. */
export const pages = {
  now: { title: "Now", group: "Watch" },
  tail: { title: "Tail", group: "Watch", ofContainer: true },
  phones: { title: "Phones", group: "Watch", onlySandbox: true, ofAll: true },
  explain: { title: "Explain", group: "Ask", ofContainer: true },
  rehearse: { title: "Rehearse", group: "Ask", ofContainer: true },
  send: { title: "Send a change", group: "Ask", ofContainer: true },
  users: { title: "Users", group: "Look after", ofContainer: true },
  deliveries: { title: "Deliveries", group: "Look after", ofContainer: true },
  deadletters: { title: "Dead letters", group: "Look after", ofContainer: true, module: "deliveries" },
  parked: { title: "Parked changes", group: "Look after", ofContainer: true },
  containers: { title: "Containers", group: "Look after" },
  tokens: { title: "Tokens", group: "Govern", ofAll: true, module: "access" },
  audit: { title: "Audit log", group: "Govern", ofAll: true, module: "access" },
};

/** Parses an address: a page and its parameters. */
export function read(address) {
  const url = new URL(address, "http://relay");
  const [, page] = /^\/console\/([a-z]+)\/?$/.exec(url.pathname) ?? [];
  const params = Object.fromEntries(url.searchParams);
  return { page: Object.hasOwn(pages, page ?? "") ? page : "now", params };
}

/** Returns the address of a view; parameters without a value are left out. */
export function address(page, params = {}) {
  const kept = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `/console/${page}${query ? `?${query}` : ""}`;
}

/** Returns the path of a call with escaped variables: path`/admin/1/containers/${container}`. */
export function path(texts, ...parts) {
  return texts.reduce((whole, text, index) => whole + encodeURIComponent(String(parts[index - 1])) + text);
}
