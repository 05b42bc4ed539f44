/** Sensitive parameters of CSI calls: Secrets referenced by the volume, and service account tokens of the Pod. */
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { SecretReference } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { NodePod } from "../../pod/pod.ts";
import type { PodObjects } from "../../pod/pod-objects.ts";

/**
 * The decoded data of a Secret; `{}` when `ref` is undefined.
 * @param field name of the referencing field, for the error
 */
export async function readSecret(
  objects: Pick<PodObjects, "secret">,
  ref: SecretReference | undefined,
  field: string,
): Promise<Record<string, string>> {
  if (ref === undefined) return {};
  const { namespace = "", name = "" } = ref;
  try {
    const { data = {} } = await objects.secret(namespace, name);
    return Object.fromEntries(Object.entries(data).map(([key, base64]) => [key, Buffer.from(base64, "base64").toString()]));
  } catch (err) {
    const why = `kubernetes.io/csi: failed to find the secret ${name} in the namespace ${namespace} with error: ${messageOf(err)}`;
    throw new Error(`fetching ${field} ${namespace}/${name} failed: ${why}`);
  }
}

/** The volume attribute with service account tokens of the Pod, for the audiences in the driver's `tokenRequests`. */
export async function tokenAttributes(
  objects: Pick<PodObjects, "serviceAccountToken">,
  pod: NodePod,
  driver: CSIDriver | undefined,
): Promise<Record<string, string>> {
  const requests = driver?.spec.tokenRequests ?? [];
  if (requests.length === 0) return {};
  const { namespace, name, uid } = pod.metadata;
  const tokens: [string, object][] = [];
  for (const { audience, expirationSeconds } of requests) {
    const serviceAccount = pod.spec.serviceAccountName ?? "default";
    const request = {
      namespace,
      serviceAccount,
      audience,
      expirationSeconds: expirationSeconds ?? 3600,
      pod: { name, uid },
    };
    tokens.push([audience, await objects.serviceAccountToken(request)]);
  }
  return { "csi.storage.k8s.io/serviceAccount.tokens": JSON.stringify(Object.fromEntries(tokens)) };
}
