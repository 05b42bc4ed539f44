import { plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { uint64Fault } from "@coxswain/apimachinery/objects/meta/resource-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

/**
 * Parses the resourceVersion of an object sent by a client; 0 when it is empty.
 * @throws 500 without a reason, as upstream, when it is not an unsigned 64-bit integer
 * Source: k8s.io/apiserver pkg/storage/etcd3 APIObjectVersioner.ObjectResourceVersion
 */
export function revisionOf(object: KubeObject): bigint {
  const text = object.metadata.resourceVersion ?? "";
  if (text === "") return 0n;
  const fault = uint64Fault(text);
  if (fault !== undefined) throw plainError(fault);
  return BigInt(text);
}
