/** Names of RBAC objects: any valid path segment. Source: k8s.io/apimachinery pkg/api/validation/path */
export function pathSegmentNameProblems(name: string): string[] {
  if (name === "." || name === "..") return [`may not be '${name}'`];
  const errors: string[] = [];
  for (const part of ["/", "%"]) if (name.includes(part)) errors.push(`may not contain '${part}'`);
  return errors;
}
