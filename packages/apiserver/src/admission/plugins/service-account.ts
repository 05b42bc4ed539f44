/**
 * Requires that a pod's service account exists, and mounts a bound token at the well-known path.
 * Source: plugin/pkg/admission/serviceaccount/admission.go
 */
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { generateName } from "@coxswain/apimachinery/objects/meta/names";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSpec, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { mirrorPodAnnotation, podReferences } from "../../authorization/pod-references.ts";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { type PodObject, podOf, podWithContainers } from "./pod-of.ts";

const defaultAccount = "default";
const tokenMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
const tokenVolumePrefix = "kube-api-access-";
const enforceMountableSecrets = "kubernetes.io/enforce-mountable-secrets";
/** What Go's strconv.ParseBool takes for true. */
const truths: ReadonlySet<string> = new Set(["1", "t", "T", "true", "True", "TRUE"]);
/** One hour; the 7 extra seconds identify tokens requested here (--service-account-extend-token-expiration). */
const tokenSeconds = 3607;
/** The `default` account of a new namespace is created asynchronously by a controller; pods wait briefly for it. */
const attemptsForDefault = 10;
const attemptPauseMs = 100;

interface ServiceAccountObject extends KubeObject {
  automountServiceAccountToken?: boolean;
  imagePullSecrets?: { name?: string }[];
  secrets?: { name?: string }[];
}

export function serviceAccount(ctx: PluginContext): AdmissionPlugin {
  const informer = ctx.informers.for<ServiceAccountObject>(serviceAccounts);

  const accountNamed = async (attributes: AdmissionAttributes, name: string): Promise<ServiceAccountObject> => {
    const { namespace } = attributes;
    const known = informer.lister.get(`${namespace}/${name}`);
    if (known !== undefined) return known;
    const attempts = name === defaultAccount ? attemptsForDefault : 1;
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await ctx.clock.sleep(attemptPauseMs, attributes.signal);
      try {
        return await ctx.client.get<ServiceAccountObject>(serviceAccounts, { namespace, name });
      } catch (err) {
        if (!isNotFound(err)) throw err;
      }
    }
    throw notFound({ group: "", resource: "serviceaccount" }, name);
  };
  const accountOf = async (attributes: AdmissionAttributes, name: string): Promise<ServiceAccountObject> => {
    try {
      return await accountNamed(attributes, name);
    } catch (err) {
      throw refuse(attributes, `error looking up service account ${attributes.namespace}/${name}: ${messageOf(err)}`);
    }
  };

  const complete = async (attributes: AdmissionAttributes, pod: PodObject): Promise<void> => {
    pod.spec.serviceAccountName ||= defaultAccount;
    // Deprecated alias of serviceAccountName; both are always set.
    pod.spec.serviceAccount = pod.spec.serviceAccountName;
    const account = await accountOf(attributes, pod.spec.serviceAccountName);
    if (mayMount(account, pod)) mountToken(pod);
    if (!pod.spec.imagePullSecrets?.length && account.imagePullSecrets?.length) {
      pod.spec.imagePullSecrets = account.imagePullSecrets.map(({ name }) => ({ name: name ?? "" }));
    }
  };

  const check = async (attributes: AdmissionAttributes, pod: PodObject): Promise<void> => {
    const isNew = attributes.subresource === "";
    if (isMirror(pod)) return isNew ? validateMirrorPod(attributes, pod) : undefined;
    const account = await accountOf(attributes, pod.spec.serviceAccountName ?? defaultAccount);
    if (!truths.has(account.metadata.annotations?.[enforceMountableSecrets] ?? "")) return;
    if (isNew) limitSecrets(attributes, account, pod.spec);
    else limitSecrets(attributes, account, { containers: [], ephemeralContainers: pod.spec.ephemeralContainers ?? [] });
  };

  return {
    name: "ServiceAccount",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    resources: ["pods"],
    ready: () => informer.synced,
    async admit(attributes) {
      const pod = newPod(attributes);
      if (pod === undefined) return;
      if (!isMirror(pod)) await complete(attributes, pod);
      // In the mutating phase, so that these rejections come before validation errors.
      await check(attributes, pod);
    },
    async validate(attributes) {
      const pod = attributes.subresource === "" ? newPod(attributes) : podWithContainers(attributes);
      if (pod !== undefined) await check(attributes, pod);
    },
  };
}

function newPod(attributes: AdmissionAttributes): PodObject | undefined {
  return attributes.operation === "CREATE" ? podOf(attributes) : undefined;
}

function isMirror({ metadata }: KubeObject): boolean {
  return metadata.annotations !== undefined && Object.hasOwn(metadata.annotations, mirrorPodAnnotation);
}

function mayMount(account: ServiceAccountObject, pod: PodObject): boolean {
  return pod.spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
}

function mountToken({ spec }: PodObject): void {
  const existing = spec.volumes?.find(({ name }) => name.startsWith(tokenVolumePrefix));
  const volumeName = existing?.name ?? generateName(tokenVolumePrefix);
  let needed = false;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (container.volumeMounts?.some(({ mountPath }) => mountPath === tokenMountPath)) continue;
    container.volumeMounts = [...(container.volumeMounts ?? []), { name: volumeName, readOnly: true, mountPath: tokenMountPath }];
    needed = true;
  }
  if (needed && existing === undefined) spec.volumes = [...(spec.volumes ?? []), tokenVolume(volumeName)];
}

function tokenVolume(name: string): Volume {
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: tokenSeconds, path: "token" } },
        { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
        { downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] } },
      ],
      defaultMode: 0o644,
    },
  };
}

/** Mirror pods must not reference service accounts, secrets, or volumes that would grant access to API data. */
function validateMirrorPod(attributes: AdmissionAttributes, { metadata, spec }: PodObject): void {
  if (spec.serviceAccountName) throw refuse(attributes, "a mirror pod may not reference service accounts");
  const { [mirrorPodAnnotation]: _, ...annotations } = metadata.annotations ?? {};
  const references = podReferences({ metadata: { ...metadata, annotations }, spec });
  if ([...references].some((reference) => reference.startsWith("secrets/"))) {
    throw refuse(attributes, "a mirror pod may not reference secrets");
  }
  if (spec.volumes?.some(({ projected }) => projected?.sources?.some((source) => source.serviceAccountToken !== undefined))) {
    throw refuse(attributes, "a mirror pod may not use ServiceAccountToken volume projections");
  }
}

function limitSecrets(attributes: AdmissionAttributes, account: ServiceAccountObject, spec: PodSpec): void {
  const mountable = new Set(account.secrets?.map(({ name }) => name));
  const accountName = account.metadata.name;
  const allow = (secret: string | undefined, where: string): void => {
    if (secret === undefined || mountable.has(secret)) return;
    throw refuse(attributes, `${where} is not allowed because service account ${accountName} does not reference that secret`);
  };
  for (const volume of spec.volumes ?? []) {
    allow(volume.secret?.secretName, `volume with secret.secretName="${volume.secret?.secretName}"`);
  }
  for (const [kind, containers] of [
    ["init container", spec.initContainers],
    ["container", spec.containers],
    ["ephemeral container", spec.ephemeralContainers],
  ] as const) {
    for (const container of containers ?? []) {
      for (const { name, valueFrom } of container.env ?? []) {
        const secret = valueFrom?.secretKeyRef?.name;
        allow(secret, `${kind} ${container.name} with envVar ${name} referencing secret.secretName="${secret}"`);
      }
      for (const { secretRef } of container.envFrom ?? []) {
        allow(secretRef?.name, `${kind} ${container.name} with envFrom referencing secret.secretName="${secretRef?.name}"`);
      }
    }
  }
  const pullable = new Set(account.imagePullSecrets?.map(({ name }) => name));
  for (const [i, { name }] of (spec.imagePullSecrets ?? []).entries()) {
    if (!pullable.has(name)) {
      throw refuse(
        attributes,
        `imagePullSecrets[${i}].name="${name}" is not allowed because service account ${accountName} does not reference that imagePullSecret`,
      );
    }
  }
}
