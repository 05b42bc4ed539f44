/** True when the client asked for indented JSON, or looks like a person with a browser or curl and did not decline. */
export function wantsIndent(query: URLSearchParams, userAgent: string | undefined): boolean {
  const value = query.get("pretty");
  if (value !== null && value !== "") return !(value === "0" || value.toLowerCase() === "false");
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? "");
}
