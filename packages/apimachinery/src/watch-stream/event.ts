/**
 * A watch event with the type as on the wire. `DELETED` has the object's last state, `BOOKMARK` an object with only kind
 * and `metadata.resourceVersion`.
 * Source: k8s.io/apimachinery pkg/watch/watch.go
 */
export interface ObjectEvent<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: T;
}
