/**
 * Objects referenced by a pod's spec, which its kubelet needs access to.
 * Source: pkg/api/v1/pod/util.go, plugin/pkg/auth/authorizer/node/graph.go
 */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Container, EphemeralContainer, Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

export type ReferenceKind = "secrets" | "configmaps" | "persistentvolumeclaims" | "serviceaccounts";

export const mirrorPodAnnotation = "kubernetes.io/config.mirror";

/** @returns `kind/namespace/name` of each; empty for mirror pods, because kubelets create these and must not gain rights. */
export function podReferences(pod: Pod): Set<string> {
  const references = new Set<string>();
  if (pod.metadata?.annotations !== undefined && Object.hasOwn(pod.metadata.annotations, mirrorPodAnnotation)) return references;
  const namespace = pod.metadata?.namespace ?? "";
  const add = (kind: ReferenceKind, name: string | undefined): void => {
    if (name) references.add(referenceKey(kind, namespace, name));
  };
  const { spec } = pod;
  if (spec === undefined) return references;
  add("serviceaccounts", spec.serviceAccountName);
  for (const { name } of spec.imagePullSecrets ?? []) add("secrets", name);
  const containers: (Container | EphemeralContainer)[] = [
    ...(spec.initContainers ?? []),
    ...(spec.containers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ];
  for (const container of containers) {
    for (const { configMapRef, secretRef } of container.envFrom ?? []) {
      add("configmaps", configMapRef?.name);
      add("secrets", secretRef?.name);
    }
    for (const { valueFrom } of container.env ?? []) {
      add("configmaps", valueFrom?.configMapKeyRef?.name);
      add("secrets", valueFrom?.secretKeyRef?.name);
    }
  }
  for (const volume of spec.volumes ?? []) {
    add("configmaps", volume.configMap?.name);
    add("persistentvolumeclaims", volume.persistentVolumeClaim?.claimName);
    if (volume.ephemeral !== undefined) add("persistentvolumeclaims", `${pod.metadata?.name}-${volume.name}`);
    for (const source of volume.projected?.sources ?? []) {
      add("configmaps", source.configMap?.name);
      add("secrets", source.secret?.name);
    }
    for (const name of volumeSecrets(volume)) add("secrets", name);
  }
  return references;
}

function volumeSecrets(volume: Volume): (string | undefined)[] {
  return [
    volume.secret?.secretName,
    volume.azureFile?.secretName,
    volume.cephfs?.secretRef?.name,
    volume.cinder?.secretRef?.name,
    volume.flexVolume?.secretRef?.name,
    volume.rbd?.secretRef?.name,
    volume.scaleIO?.secretRef?.name,
    volume.iscsi?.secretRef?.name,
    volume.storageos?.secretRef?.name,
    volume.csi?.nodePublishSecretRef?.name,
  ];
}

/** `secrets/web/token`: the form in which all references are returned. */
export function referenceKey(kind: ReferenceKind, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

interface SecretRef {
  name?: string;
  namespace?: string;
  secretName?: string;
  secretNamespace?: string;
}

/** Secrets needed to mount a persistent volume, as `secrets/namespace/name`. */
export function volumeSecretReferences(volume: KubeObject, claimNamespace: string): string[] {
  // Cast: a volume, whose sources are read by name.
  const source = (volume as { spec?: Record<string, Record<string, SecretRef | string> | undefined> }).spec ?? {};
  const references: string[] = [];
  const add = (ref: unknown): void => {
    if (typeof ref !== "object" || ref === null) return;
    const { name, namespace }: SecretRef = ref;
    if (name) references.push(referenceKey("secrets", namespace || claimNamespace, name));
  };
  for (const type of ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"]) add(source[type]?.["secretRef"]);
  const azureFile: SecretRef | undefined = source["azureFile"];
  if (azureFile?.secretName) {
    references.push(referenceKey("secrets", azureFile.secretNamespace || claimNamespace, azureFile.secretName));
  }
  for (const field of ["controllerPublishSecretRef", "nodePublishSecretRef", "nodeStageSecretRef"]) add(source["csi"]?.[field]);
  return references;
}
