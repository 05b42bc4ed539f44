/** Error texts for a name that is not a valid path segment. Source: k8s.io/apimachinery pkg/api/validation/path */
export function pathSegmentFaults(name: string): string[] {
  if (name === "." || name === "..") return [`may not be '${name}'`];
  if (!name.includes("/") && !name.includes("%")) return [];
  return ["/", "%"].filter((character) => name.includes(character)).map((character) => `may not contain '${character}'`);
}
