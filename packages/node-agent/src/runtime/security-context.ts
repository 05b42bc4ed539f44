import { join, resolve, sep } from "node:path";
import { appArmorContainer, seccompContainer, seccompPod } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type { SecurityContext } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type AnyContainer, describePod, type NodePod } from "../pod/pod.ts";
import type { Cri, CriInput } from "./cri-schema.ts";

const inPod = 0;
const inContainer = 1;
const onNode = 2;
const inTarget = 3;

/** The namespaces of a Pod's sandbox, or of an ephemeral container that joins the PID namespace of `targetId`. */
export function namespaceOptions(pod: NodePod, targetId?: string): CriInput<"NamespaceOption"> {
  let pid: number = inContainer;
  if (pod.spec.hostPID) pid = onNode;
  else if (pod.spec.shareProcessNamespace) pid = inPod;
  const options = { network: pod.spec.hostNetwork ? onNode : inPod, ipc: pod.spec.hostIPC ? onNode : inPod };
  return targetId === undefined ? { ...options, pid } : { ...options, pid: inTarget, targetId };
}

/** Fields of the container, falling back to those of the Pod. */
function effective(pod: NodePod, container: AnyContainer): SecurityContext {
  const ofPod = pod.spec.securityContext;
  const own = container.securityContext;
  return {
    ...own,
    runAsUser: own?.runAsUser ?? ofPod?.runAsUser,
    runAsGroup: own?.runAsGroup ?? ofPod?.runAsGroup,
    runAsNonRoot: own?.runAsNonRoot ?? ofPod?.runAsNonRoot,
    seLinuxOptions: own?.seLinuxOptions ?? ofPod?.seLinuxOptions,
  };
}

const maskedPaths = [
  "/proc/asound",
  "/proc/acpi",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
];
const readonlyPaths = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** Pure: the CRI security context of a container. Source: pkg/kubelet/kuberuntime/security_context.go */
export function containerSecurityContext(
  pod: NodePod,
  container: AnyContainer,
  image: Cri<"Image"> | undefined,
  options: { seccompDefault: boolean; seccompRoot: string; targetId?: string | undefined; volumeGroups: readonly number[] },
): CriInput<"LinuxContainerSecurityContext"> {
  const context = effective(pod, container);
  const ofPod = pod.spec.securityContext;
  const unmasked = context.procMount === "Unmasked";
  const imageUid = image?.uid?.value;
  const runAsUser = context.runAsUser ?? imageUid;
  return {
    capabilities: { addCapabilities: context.capabilities?.add ?? [], dropCapabilities: context.capabilities?.drop ?? [] },
    privileged: context.privileged ?? false,
    namespaceOptions: namespaceOptions(pod, options.targetId),
    selinuxOptions: context.seLinuxOptions,
    runAsUser: runAsUser === undefined ? undefined : { value: runAsUser },
    runAsUsername: runAsUser === undefined ? (image?.username ?? "") : "",
    runAsGroup: context.runAsGroup === undefined ? undefined : { value: context.runAsGroup },
    readonlyRootfs: context.readOnlyRootFilesystem ?? false,
    supplementalGroups: [
      ...(ofPod?.fsGroup === undefined ? [] : [ofPod.fsGroup]),
      ...(ofPod?.supplementalGroups ?? []),
      ...options.volumeGroups,
    ],
    noNewPrivs: context.allowPrivilegeEscalation === false,
    maskedPaths: unmasked ? [] : maskedPaths,
    readonlyPaths: unmasked ? [] : readonlyPaths,
    seccomp: containerSeccompProfile(pod, container, options.seccompDefault, options.seccompRoot),
    apparmorProfile: pod.metadata.annotations?.[appArmorContainer + container.name] ?? "",
  };
}

/** @returns the error when `runAsNonRoot` is set and the container would, or might, run as root */
export function violatesNonRoot(pod: NodePod, container: AnyContainer, image: Cri<"Image"> | undefined): string | undefined {
  const context = effective(pod, container);
  if (context.runAsNonRoot !== true) return undefined;
  const where = `(pod: ${JSON.stringify(describePod(pod))}, container: ${container.name})`;
  if (context.runAsUser !== undefined) {
    return context.runAsUser === 0 ? `container's runAsUser breaks non-root policy ${where}` : undefined;
  }
  if (image?.uid != null) {
    return image.uid.value === 0 ? `container has runAsNonRoot and image will run as root ${where}` : undefined;
  }
  const user = image?.username ?? "";
  if (user !== "") {
    return `container has runAsNonRoot and image has non-numeric user (${user}), cannot verify user is non-root ${where}`;
  }
  return `container has runAsNonRoot and image will run as root ${where}`;
}

/** Also the sandbox's profile: its only process is the runtime's pause process, independent of the Pod's profiles. */
export const runtimeDefault = 0;
const unconfined = 1;
const localhost = 2;

function containerSeccompProfile(
  pod: NodePod,
  container: AnyContainer,
  seccompDefault: boolean,
  root: string,
): CriInput<"SecurityProfile"> {
  const annotations = pod.metadata.annotations;
  return (
    fromField(container.securityContext?.seccompProfile, root) ??
    fromAnnotation(annotations?.[seccompContainer + container.name], root) ??
    fromField(pod.spec.securityContext?.seccompProfile, root) ??
    fromAnnotation(annotations?.[seccompPod], root) ?? {
      profileType: seccompDefault ? runtimeDefault : unconfined,
    }
  );
}

function fromField(
  profile: { type: string; localhostProfile?: string } | undefined,
  root: string,
): CriInput<"SecurityProfile"> | undefined {
  if (profile === undefined) return undefined;
  if (profile.type === "RuntimeDefault") return { profileType: runtimeDefault };
  if (profile.type === "Localhost") return localProfile(profile.localhostProfile ?? "", root);
  return { profileType: unconfined };
}

function fromAnnotation(value: string | undefined, root: string): CriInput<"SecurityProfile"> | undefined {
  if (value === undefined || value === "") return undefined;
  if (value === "runtime/default" || value === "docker/default") return { profileType: runtimeDefault };
  if (value.startsWith("localhost/")) return localProfile(value.slice("localhost/".length), root);
  return { profileType: unconfined };
}

/** Profile names are user input: a name that leads outside of the directory resolves to a profile that does not exist. */
function localProfile(name: string, root: string): CriInput<"SecurityProfile"> {
  const path = resolve(root, name);
  const inside = path.startsWith(resolve(root) + sep);
  return { profileType: localhost, localhostRef: inside ? path : join(root, "not-a-profile") };
}
