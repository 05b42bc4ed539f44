/** Source: Go's strconv.ParseBool */
const truths: ReadonlySet<string> = new Set(["1", "t", "T", "true", "True", "TRUE"]);

/** True when the client asked for indented JSON, or looks like a person with a browser or curl and did not decline. */
export function wantsIndent(query: URLSearchParams, userAgent: string | undefined): boolean {
  const value = query.get("pretty");
  if (value !== null && value !== "") return truths.has(value);
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? "");
}
