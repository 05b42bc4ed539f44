/**
 * What happened to an object, the word as on the wire. `DELETED` carries the object's last state, `BOOKMARK` an object
 * with nothing but its kind and `metadata.resourceVersion`.
 * Source: k8s.io/apimachinery pkg/watch/watch.go
 */
export interface ObjectEvent<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: T;
}
