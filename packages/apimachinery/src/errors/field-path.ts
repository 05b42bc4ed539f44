/**
 * Field paths of errors are plain strings: `spec.containers[0].ports[1]`, `metadata.labels[app]`.
 * Source: k8s.io/apimachinery pkg/util/validation/field/path.go
 */
export function child(path: string, ...names: string[]): string {
  const below = names.join(".");
  return path === "" ? below : `${path}.${below}`;
}

export function index(path: string, i: number): string {
  return `${path}[${i}]`;
}

export function mapKey(path: string, key: string): string {
  return `${path}[${key}]`;
}
