/** URL parsing as in Go. Source: net/url url.go; net/http server.go since Go 1.17 */

const brokenEscape = /%(?![0-9a-fA-F]{2})/;

/**
 * Decodes the percent escapes of a path. Invalid UTF-8 is replaced by U+FFFD.
 * @throws URIError for a broken escape
 */
export function decodePath(path: string): string {
  if (!path.includes("%")) return path;
  if (brokenEscape.test(path)) throw new URIError(`invalid URL escape in ${JSON.stringify(path)}`);
  try {
    return decodeURIComponent(path);
  } catch {
    const bytes = path.replaceAll(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    return Buffer.from(bytes, "latin1").toString("utf8");
  }
}

/** Shared by requests without a query; never modified. */
const noQuery = new URLSearchParams();

/** The query of a URL. As in Go, parameters with a broken escape or a semicolon (formerly a separator) are ignored. */
export function queryOf(url: string): URLSearchParams {
  const at = url.indexOf("?");
  if (at < 0) return noQuery;
  const query = url.slice(at + 1);
  if (!query.includes("%") && !query.includes(";")) return new URLSearchParams(query);
  const readable = query.split("&").filter((pair) => !pair.includes(";") && !brokenEscape.test(pair));
  return new URLSearchParams(readable.join("&"));
}
