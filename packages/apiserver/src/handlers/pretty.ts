/** Source: Go's strconv.ParseBool */
const truths: ReadonlySet<string> = new Set(["1", "t", "T", "true", "True", "TRUE"]);

/** Whether to indent JSON: ?pretty is set, or absent and the User-Agent is a browser, curl or wget. */
export function wantsIndent(query: URLSearchParams, userAgent: string | undefined): boolean {
  const value = query.get("pretty");
  if (value !== null && value !== "") return truths.has(value);
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? "");
}
