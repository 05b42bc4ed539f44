/** Why the containers of a pod that has a node do not run, or are not ready. */
import { humanDuration, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Container, ContainerStatus, Event, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  conditionOf,
  detail,
  type Facts,
  firstTimeOfEvent,
  latestEvent,
  oneLine,
  type Problem,
  plural,
  sinceTime,
  timeOfEvent,
} from "../rule.ts";
import type { PodFacts } from "./pod-facts.ts";

type PodRule = (facts: Facts<Pod, PodFacts>) => Problem | undefined;

const kubelet = "kubelet";

/** Name of the controller whose pod template has to be changed. */
const template = ({ related: { topOwner } }: Facts<Pod, PodFacts>): string => topOwner ?? "the pod";

interface OfContainer {
  readonly facts: Facts<Pod, PodFacts>;
  readonly status: ContainerStatus;
  readonly container: Container | undefined;
  /** `container web`, `init container setup` */
  readonly named: string;
  /** Events about the pod but for those that name another container, the latest first. */
  readonly events: readonly Event[];
}

type ContainerRule = (of: OfContainer) => Problem | undefined;

const since = (time: string | null | undefined, { facts }: OfContainer): { since?: string } =>
  sinceTime(time ?? facts.object.status?.startTime ?? facts.object.metadata.creationTimestamp);

/** Truncated, because kubelet messages repeat what was attempted. */
const briefDetail = (text: string | undefined): string => detail(text, 260);

const pulls: ContainerRule = (of) => {
  const { status, named, facts, events } = of;
  const { reason, message } = status.state?.waiting ?? {};
  const event = latestEvent(events, ["Failed", "ErrImageNeverPull", "InspectFailed"]);
  const common = { by: kubelet, ...since(event && firstTimeOfEvent(event), of) };
  const change = `Correct the image in ${template(facts)}`;
  const image = of.container?.image ?? status.image;
  switch (reason) {
    case "InvalidImageName":
      return { ...common, reason, summary: `${named}: image name ${image} is invalid`, remedy: `${change}.` };
    case "ErrImageNeverPull":
      return {
        ...common,
        reason,
        summary: `${named}: image ${image} is not on the node, and imagePullPolicy Never forbids to pull it`,
        remedy: "Load the image on the node, or use imagePullPolicy IfNotPresent.",
      };
    case "ErrImagePull":
    case "ImagePullBackOff":
    case "RegistryUnavailable": {
      const pull = events.find(({ message: text = "" }) => /Failed to pull image/.test(text))?.message;
      const why = (reason === "ErrImagePull" ? message : pull) ?? message;
      return {
        ...common,
        reason: "ImagePullFailed",
        summary: `${named}: image ${image} cannot be pulled${briefDetail(pullFailure(why))}`,
        remedy: `${change}; or make its registry reachable from the node, with imagePullSecrets if it requires credentials.`,
      };
    }
    default:
      return undefined;
  }
};

/** The last part of the runtime's error, which wraps it several times. */
function pullFailure(text: string | undefined): string {
  const line = (text ?? "").replace(/^Failed to pull image "[^"]*": /, "").replace(/^Back-off pulling image.*$/, "");
  return line.replace(/^rpc error: code = \w+ desc = /, "").replace(/^failed to pull and unpack image "[^"]*": /, "");
}

const config: ContainerRule = (of) => {
  const { status, named, facts } = of;
  const { reason, message } = status.state?.waiting ?? {};
  const common = { by: kubelet, ...since(undefined, of) };
  switch (reason) {
    case "CreateContainerConfigError": {
      const root = /runAsNonRoot/.test(message ?? "");
      return {
        ...common,
        reason,
        summary: `${named} cannot be configured${briefDetail(message)}`,
        remedy: root
          ? `Set runAsUser to a number other than 0 in ${template(facts)}, or use an image with such a user.`
          : `Create what is missing, or correct its name or key in ${template(facts)}, or mark it optional.`,
      };
    }
    case "CreateContainerError":
    case "RunContainerError":
      return {
        ...common,
        reason,
        summary: `${named} cannot be started${briefDetail(status.lastState?.terminated?.message ?? message)}`,
        remedy: `Correct command, args or mounts of the container in ${template(facts)}.`,
      };
    default:
      return undefined;
  }
};

/** The event of the failed liveness or startup probe for which the kubelet killed the container; undefined for another cause. */
function killedByProbe({ events, status }: OfContainer): Event | undefined {
  const ended = status.lastState?.terminated ?? status.state?.terminated;
  if (ended === undefined && status.restartCount === 0) return undefined;
  const killing = events.find(
    ({ reason, message = "" }) =>
      reason === "Killing" && /^Container (\S+) failed (?:liveness|startup) probe/.exec(message)?.[1] === status.name,
  );
  return killing && latestProbe(events, /^(Liveness|Startup) probe/);
}

const latestProbe = (events: readonly Event[], kind: RegExp): Event | undefined =>
  events.find(({ reason, message = "" }) => reason === "Unhealthy" && kind.test(message));

const isStarting = ({ status }: OfContainer): boolean => {
  const { waiting, running } = status.state ?? {};
  return waiting?.reason === "CrashLoopBackOff" || (running === undefined && waiting === undefined) || !status.ready;
};

const restarts: ContainerRule = (of) => {
  const { status, named, facts } = of;
  const ended = status.state?.terminated ?? status.lastState?.terminated;
  if (!isStarting(of) && status.state?.running !== undefined) return undefined;
  const probe = killedByProbe(of);
  const times = status.restartCount > 0 ? `; restarted ${plural(status.restartCount, "time")}` : "";
  if (probe !== undefined) {
    return {
      by: kubelet,
      reason: "LivenessProbeFailed",
      summary: `${named} is repeatedly killed by its probe: ${oneLine(probe.message, 200)}${times}`,
      remedy: `Correct the probe in ${template(facts)} (path, port, timeoutSeconds, initialDelaySeconds or a startupProbe), or the endpoint that it checks.`,
      ...since(firstTimeOfEvent(probe), of),
    };
  }
  if (ended === undefined) return undefined;
  const { exitCode, reason, message, finishedAt } = ended;
  const common = { by: kubelet, ...since(finishedAt, of) };
  if (reason === "OOMKilled") {
    const limit = of.container?.resources?.limits?.["memory"];
    return {
      ...common,
      reason,
      summary: `${named} ran out of memory (OOMKilled)${limit === undefined ? "" : `: its limit is ${limit}`}${times}`,
      remedy: `Raise the memory limit in ${template(facts)}, or make the program use less.`,
    };
  }
  if (reason === "StartError" || reason === "ContainerCannotRun") {
    return {
      ...common,
      reason,
      summary: `${named} cannot be started${briefDetail(message)}${times}`,
      remedy: `Correct command and args of the container in ${template(facts)}.`,
    };
  }
  if (exitCode === 0 && !endsTooEarly(of)) return undefined;
  const log = `kubectl logs ${facts.object.metadata.name} -n ${facts.object.metadata.namespace} -c ${status.name}`;
  return {
    ...common,
    reason: "ContainerExits",
    summary: `${named} exits with code ${exitCode}${briefDetail(message)}${times}`,
    remedy: `Read its log: ${log}${status.restartCount > 0 ? " --previous" : ""}`,
  };
};

/** A container that should run for ever and exits with 0 is restarted with a growing delay. */
const endsTooEarly = ({ status, facts }: OfContainer): boolean =>
  facts.object.spec.restartPolicy !== "Never" && status.state?.waiting?.reason === "CrashLoopBackOff";

const containerRules: readonly ContainerRule[] = [pulls, config, restarts];

const containers: PodRule = (facts) => {
  const { object } = facts;
  const ofAll = [
    ...pairs(facts, object.status?.initContainerStatuses, object.spec.initContainers, "init container"),
    ...containersOf(facts),
  ];
  for (const of of ofAll) {
    if (of.named.startsWith("init") && of.status.state?.terminated?.exitCode === 0) continue;
    for (const rule of containerRules) {
      const problem = rule(of);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
};

const containersOf = (facts: Facts<Pod, PodFacts>): OfContainer[] =>
  pairs(facts, facts.object.status?.containerStatuses, facts.object.spec.containers, "container");

function pairs(
  facts: Facts<Pod, PodFacts>,
  statuses: readonly ContainerStatus[] | undefined,
  of: readonly Container[] | undefined,
  what: "container" | "init container",
): OfContainer[] {
  const field = what === "container" ? "containers" : "initContainers";
  return (statuses ?? []).map((status) => ({
    facts,
    status,
    container: of?.find(({ name }) => name === status.name),
    named: `${what} ${status.name}`,
    events: facts.events.filter(({ involvedObject: { fieldPath } }) =>
      [undefined, "", `spec.${field}{${status.name}}`].includes(fieldPath),
    ),
  }));
}

/** Events of a pod whose containers are not created yet. */
const blockers: readonly { reasons: readonly string[]; reason: string; say: (text: string) => string; remedy: string }[] = [
  {
    reasons: ["FailedMount", "FailedAttachVolume", "FailedMapVolume"],
    reason: "VolumeNotMounted",
    say: (text) => `a volume cannot be mounted: ${mountFailure(text)}`,
    remedy: "Create what the volume refers to, or correct the volume in the pod's template.",
  },
  {
    reasons: ["FailedCreatePodSandBox", "FailedPodSandBoxStatus"],
    reason: "SandboxFailed",
    say: (text) => `its sandbox cannot be made: ${text}`,
    remedy: "Look at the container runtime and the network plugin of the node: kubectl why node/<name>.",
  },
  {
    reasons: ["NetworkNotReady"],
    reason: "NetworkNotReady",
    say: (text) => `the pod network of its node is not ready: ${text}`,
    remedy: "Install or repair the network plugin of the node.",
  },
];

const mountFailure = (text: string): string =>
  /(?:MountVolume\.\w+|AttachVolume\.\w+) failed for volume "([^"]+)" ?: ?(.+)$/s.exec(text)?.slice(1).join(": ") ?? text;

const creating: PodRule = (facts) => {
  const { object, events, related } = facts;
  const waits = [...(object.status?.initContainerStatuses ?? []), ...(object.status?.containerStatuses ?? [])].some(
    ({ state }) => state?.waiting !== undefined && /^(ContainerCreating|PodInitializing|)$/.test(state.waiting.reason ?? ""),
  );
  const unstarted = object.status?.containerStatuses === undefined && object.status?.phase === "Pending";
  if (!object.spec.nodeName || (!waits && !unstarted)) return undefined;
  const [missing] = related.missing;
  for (const { reasons, reason, say, remedy } of blockers) {
    const event = latestEvent(events, reasons);
    if (event === undefined) continue;
    const text =
      missing !== undefined && reason === "VolumeNotMounted" ? `${missing} does not exist` : oneLine(event.message, 300);
    return { by: kubelet, reason, summary: say(text), remedy, ...sinceTime(firstTimeOfEvent(event)) };
  }
  if (missing === undefined) return undefined;
  return {
    by: "explain",
    reason: "SourceMissing",
    summary: `${missing} does not exist`,
    remedy: `Create it, or correct its name in ${template(facts)}.`,
    ...sinceTime(object.status?.startTime),
  };
};

/**
 * For a pending pod with a node and without events that explain it: the node does not exist, or its kubelet has not started the
 * containers yet.
 */
const stillCreating: PodRule = ({ object, related }) => {
  if (object.status?.phase !== "Pending" || !object.spec.nodeName) return undefined;
  const since = sinceTime(object.status?.startTime ?? object.metadata.creationTimestamp);
  if (related.node === "missing") {
    return {
      by: "explain",
      reason: "NodeMissing",
      summary: `its node ${object.spec.nodeName} does not exist`,
      remedy: "Delete the pod, so that its controller creates another; leave nodeName out of the template.",
      ...since,
    };
  }
  const seen = object.status?.startTime !== undefined;
  return seen
    ? { by: kubelet, reason: "Starting", summary: "its containers are being created", ...since }
    : {
        by: "explain",
        reason: "KubeletHasNotSeen",
        summary: `the kubelet of ${object.spec.nodeName} has not processed it yet`,
        ...since,
      };
};

const failed: PodRule = ({ object }) => {
  const { phase, reason, message, startTime } = object.status ?? {};
  if (phase !== "Failed") return undefined;
  const ended = object.status?.containerStatuses?.map(({ state }) => state?.terminated?.finishedAt).find(Boolean);
  return {
    by: kubelet,
    reason: reason || "PodFailed",
    summary: `has failed${reason ? ` (${reason})` : ""}${briefDetail(message)}`,
    remedy:
      reason === "Evicted"
        ? "Relieve the node, or give the pod requests that cover its use; then delete this pod."
        : "Delete the pod; its controller, if it has one, creates another.",
    ...sinceTime(ended ?? startTime),
  };
};

/** The latest failure of the probe that keeps the container from being ready, unless an earlier start of the pod had it. */
function failedProbe({ facts, status, events }: OfContainer): Event | undefined {
  const startup = status.started === false ? latestProbe(events, /^Startup probe/) : undefined;
  const probe = startup ?? latestProbe(events, /^Readiness probe/);
  const began = parseTime(facts.object.status?.startTime ?? "") ?? 0;
  return probe !== undefined && (parseTime(timeOfEvent(probe) ?? "") ?? 0) >= began ? probe : undefined;
}

const notReady: PodRule = (facts) => {
  const { object } = facts;
  const ready = conditionOf(object.status?.conditions, "Ready");
  if (object.status?.phase !== "Running" || ready?.status === "True") return undefined;
  const since = sinceTime(ready?.lastTransitionTime);
  const unready = containersOf(facts).filter(({ status }) => !status.ready);
  for (const of of unready) {
    const probe = failedProbe(of);
    if (probe === undefined) continue;
    const { name } = of.status;
    return {
      by: kubelet,
      reason: probe.message?.startsWith("Startup") ? "StartupProbeFailed" : "ReadinessProbeFailed",
      summary: `container ${name} is not ready: ${oneLine(probe.message, 240)}`,
      remedy: `Correct the probe in ${template(facts)}, or the endpoint that it checks: kubectl logs ${object.metadata.name} -c ${name}`,
      ...since,
    };
  }
  const gates = (object.spec.readinessGates ?? []).filter(
    ({ conditionType }) => conditionOf(object.status?.conditions, conditionType)?.status !== "True",
  );
  const [first] = unready;
  if (first === undefined && gates.length > 0) {
    return {
      by: "explain",
      reason: "ReadinessGate",
      summary: `readiness gate ${gates.map(({ conditionType }) => conditionType).join(", ")} is not met`,
      remedy: "Look at the controller that sets this condition of the pod.",
      ...since,
    };
  }
  if (first === undefined)
    return { by: kubelet, reason: ready?.reason || "NotReady", summary: `is not ready${briefDetail(ready?.message)}`, ...since };
  const delay = first.container?.readinessProbe?.initialDelaySeconds;
  return {
    by: kubelet,
    reason: "NotReadyYet",
    summary: `container ${first.status.name} is not ready yet${delay ? ` (its first probe is after ${humanDuration(delay * 1000)})` : ""}`,
    ...since,
  };
};

export const containerPhaseRules: readonly PodRule[] = [containers, creating, failed, notReady, stillCreating];
