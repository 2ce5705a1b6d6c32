/** Request targets: what node calls the URL of a request. */

/** Path and query of a request target as they were sent; the form with scheme and host (RFC 9112, 3.2.2) is cut down. */
export function splitTarget(target: string): { path: string; query: string } {
  if (target.startsWith("/") && !target.includes("#")) {
    const at = target.indexOf("?"); // nearly always: no scheme, no host, no fragment
    return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at + 1) };
  }
  const [, path = "", query = ""] = /^(?:https?:\/\/[^/?#]*)?([^?#]*)\??([^#]*)/is.exec(target) ?? [];
  return { path: path === "" ? "/" : path, query };
}
