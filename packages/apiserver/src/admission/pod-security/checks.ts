/**
 * The Pod Security Standards as a list of checks, each a pure function of pod metadata and spec. Restricted checks replace
 * the baseline checks that they include.
 * Source: k8s.io/pod-security-admission policy/check_*.go (v1.23)
 */

import {
  appArmorContainer,
  safeSysctls,
  seccompContainer,
  seccompPod,
} from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type { ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import type {
  Container,
  EphemeralContainer,
  PodSpec,
  SecurityContext,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { keysOf } from "@coxswain/apimachinery/process/narrowing/keys";

export type Level = "privileged" | "baseline" | "restricted";

interface Violation {
  readonly reason: string;
  readonly detail: string;
}

interface Check {
  readonly id: string;
  readonly level: "baseline" | "restricted";
  /** Minor version 1.x of the standard that introduced this form of the check. */
  readonly since: number;
  /** IDs of baseline checks that this one includes. */
  readonly replaces?: readonly string[];
  run(metadata: ObjectMeta, spec: PodSpec): Violation | undefined;
}

/**
 * @param minor of the standard's version 1.x
 * @returns violations in upstream's order: baseline, then restricted, each sorted by id
 */
export function violations(level: Level, minor: number, metadata: ObjectMeta, spec: PodSpec): Violation[] {
  if (level === "privileged") return [];
  const known = checks.filter((check) => check.since <= minor && (check.level === "baseline" || level === "restricted"));
  // Later forms of a check replace earlier ones with the same id.
  const active = known.filter(({ id }, i) => !known.slice(i + 1).some((later) => later.id === id));
  const replaced = new Set(level === "restricted" ? active.flatMap(({ replaces }) => replaces ?? []) : []);
  return active.filter(({ id }) => !replaced.has(id)).flatMap((check) => check.run(metadata, spec) ?? []);
}

type AnyContainer = Container | EphemeralContainer;

function containersOf(spec: PodSpec): AnyContainer[] {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? []), ...(spec.ephemeralContainers ?? [])];
}

function quoted(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}
function plural(one: string, many: string, count: number): string {
  return count === 1 ? one : many;
}
function namedContainers(names: readonly string[]): string {
  return `${plural("container", "containers", names.length)} ${quoted(names)}`;
}
function badContainers(
  spec: PodSpec,
  isBad: (securityContext: SecurityContext | undefined, container: AnyContainer) => boolean,
): string[] {
  return containersOf(spec)
    .filter((container) => isBad(container.securityContext, container))
    .map(({ name }) => name);
}
function whenBad(names: readonly string[], reason: string, rule: string): Violation | undefined {
  return names.length === 0 ? undefined : { reason, detail: `${namedContainers(names)} ${rule}` };
}

const defaultCapabilities = new Set([
  "AUDIT_WRITE",
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "MKNOD",
  "NET_BIND_SERVICE",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_CHROOT",
]);
const selinuxTypes = new Set(["", "container_t", "container_init_t", "container_kvm_t"]);
const restrictedVolumeTypes = new Set([
  "configMap",
  "downwardAPI",
  "emptyDir",
  "projected",
  "secret",
  "csi",
  "persistentVolumeClaim",
  "ephemeral",
]);

const checks: readonly Check[] = [
  {
    id: "appArmorProfile",
    level: "baseline",
    since: 0,
    run({ annotations = {} }) {
      const bad = Object.entries(annotations).filter(
        ([key, value]) =>
          key.startsWith(appArmorContainer) && value !== "" && value !== "runtime/default" && !value.startsWith("localhost/"),
      );
      if (bad.length === 0) return undefined;
      return {
        reason: plural("forbidden AppArmor profile", "forbidden AppArmor profiles", bad.length),
        detail: bad
          .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
          .sort()
          .join(", "),
      };
    },
  },
  {
    id: "capabilities_baseline",
    level: "baseline",
    since: 0,
    run(_metadata, spec) {
      const added = new Set<string>();
      const bad = badContainers(spec, (context) => {
        const forbidden = (context?.capabilities?.add ?? []).filter((capability) => !defaultCapabilities.has(capability));
        for (const capability of forbidden) added.add(capability);
        return forbidden.length > 0;
      });
      return whenBad(
        bad,
        "non-default capabilities",
        `must not include ${quoted([...added].sort())} in securityContext.capabilities.add`,
      );
    },
  },
  {
    id: "hostNamespaces",
    level: "baseline",
    since: 0,
    run(_metadata, { hostNetwork, hostPID, hostIPC }) {
      const shared = [hostNetwork && "hostNetwork=true", hostPID && "hostPID=true", hostIPC && "hostIPC=true"].filter(Boolean);
      return shared.length === 0 ? undefined : { reason: "host namespaces", detail: shared.join(", ") };
    },
  },
  {
    id: "hostPathVolumes",
    level: "baseline",
    since: 0,
    run(_metadata, { volumes = [] }) {
      const bad = volumes.filter(({ hostPath }) => hostPath !== undefined).map(({ name }) => name);
      return bad.length === 0
        ? undefined
        : { reason: "hostPath volumes", detail: `${plural("volume", "volumes", bad.length)} ${quoted(bad)}` };
    },
  },
  {
    id: "hostPorts",
    level: "baseline",
    since: 0,
    run(_metadata, spec) {
      const ports = new Set<number>();
      const bad = badContainers(spec, (_context, { ports: own = [] }) => {
        const hostPorts = own.flatMap(({ hostPort }) => (hostPort ? [hostPort] : []));
        for (const port of hostPorts) ports.add(port);
        return hostPorts.length > 0;
      });
      if (bad.length === 0) return undefined;
      const list = [...ports].map(String).sort().join(", ");
      return {
        reason: "hostPort",
        detail: `${namedContainers(bad)} ${plural("uses", "use", bad.length)} ${plural("hostPort", "hostPorts", ports.size)} ${list}`,
      };
    },
  },
  {
    id: "privileged",
    level: "baseline",
    since: 0,
    run: (_metadata, spec) =>
      whenBad(
        badContainers(spec, (context) => context?.privileged === true),
        "privileged",
        "must not set securityContext.privileged=true",
      ),
  },
  {
    id: "procMount",
    level: "baseline",
    since: 0,
    run(_metadata, spec) {
      const values = new Set<string>();
      const bad = badContainers(spec, (context) => {
        const value: string = context?.procMount ?? "Default";
        if (value === "Default") return false;
        values.add(value);
        return true;
      });
      return whenBad(bad, "procMount", `must not set securityContext.procMount to ${quoted([...values].sort())}`);
    },
  },
  {
    id: "seLinuxOptions",
    level: "baseline",
    since: 0,
    run(_metadata, spec) {
      const types = new Set<string>();
      let user = false;
      let role = false;
      const isBad = (options: { type?: string; user?: string; role?: string } | undefined): boolean => {
        if (options === undefined) return false;
        const badType = !selinuxTypes.has(options.type ?? "");
        if (badType) types.add(options.type!);
        user ||= !!options.user;
        role ||= !!options.role;
        return badType || !!options.user || !!options.role;
      };
      const setters = isBad(spec.securityContext?.seLinuxOptions) ? ["pod"] : [];
      const bad = badContainers(spec, (context) => isBad(context?.seLinuxOptions));
      if (bad.length > 0) setters.push(namedContainers(bad));
      if (setters.length === 0) return undefined;
      const data = [
        ...(types.size > 0 ? [`${plural("type", "types", types.size)} ${quoted([...types].sort())}`] : []),
        ...(user ? ["user may not be set"] : []),
        ...(role ? ["role may not be set"] : []),
      ];
      return {
        reason: "seLinuxOptions",
        detail: `${setters.join(" and ")} set forbidden securityContext.seLinuxOptions: ${data.join("; ")}`,
      };
    },
  },
  {
    id: "seccompProfile_baseline",
    level: "baseline",
    since: 0,
    run({ annotations = {} }, spec) {
      const isGood = (text: string): boolean =>
        text === "runtime/default" || text === "docker/default" || text.startsWith("localhost/");
      const keys = [seccompPod, ...containersOf(spec).map(({ name }) => seccompContainer + name)];
      const bad = [...new Set(keys)].filter((key) => Object.hasOwn(annotations, key) && !isGood(annotations[key]!));
      if (bad.length === 0) return undefined;
      const list = bad.map((key) => `${key}=${JSON.stringify(annotations[key])}`).sort();
      return {
        reason: "seccompProfile",
        detail: `forbidden ${plural("annotation", "annotations", bad.length)} ${list.join(", ")}`,
      };
    },
  },
  // In 1.19 the field replaced the annotations.
  {
    id: "seccompProfile_baseline",
    level: "baseline",
    since: 19,
    run(_metadata, spec) {
      const isBad = (type: string | undefined): boolean => type === "Unconfined";
      const setters = isBad(spec.securityContext?.seccompProfile?.type) ? ["pod"] : [];
      const bad = badContainers(spec, (context) => isBad(context?.seccompProfile?.type));
      if (bad.length > 0) setters.push(namedContainers(bad));
      if (setters.length === 0) return undefined;
      return {
        reason: "seccompProfile",
        detail: `${setters.join(" and ")} must not set securityContext.seccompProfile.type to "Unconfined"`,
      };
    },
  },
  {
    id: "sysctls",
    level: "baseline",
    since: 0,
    run(_metadata, { securityContext }) {
      const bad = (securityContext?.sysctls ?? []).map(({ name }) => name).filter((name) => !safeSysctls.has(name));
      return bad.length === 0 ? undefined : { reason: "forbidden sysctls", detail: bad.join(", ") };
    },
  },
  {
    id: "windowsHostProcess",
    level: "baseline",
    since: 0,
    run(_metadata, spec) {
      const setters: string[] = [];
      if (spec.securityContext?.windowsOptions?.hostProcess === true) setters.push("pod");
      const bad = badContainers(spec, (context) => context?.windowsOptions?.hostProcess === true);
      if (bad.length > 0) setters.push(namedContainers(bad));
      if (setters.length === 0) return undefined;
      return {
        reason: "hostProcess",
        detail: `${setters.join(" and ")} must not set securityContext.windowsOptions.hostProcess=true`,
      };
    },
  },
  {
    id: "allowPrivilegeEscalation",
    level: "restricted",
    since: 8,
    run: (_metadata, spec) =>
      whenBad(
        badContainers(spec, (context) => context?.allowPrivilegeEscalation !== false),
        "allowPrivilegeEscalation != false",
        "must set securityContext.allowPrivilegeEscalation=false",
      ),
  },
  {
    id: "capabilities_restricted",
    level: "restricted",
    since: 22,
    replaces: ["capabilities_baseline"],
    run(_metadata, spec) {
      const added = new Set<string>();
      const adding: string[] = [];
      const keeping: string[] = [];
      for (const { name, securityContext } of containersOf(spec)) {
        const { add = [], drop = [] } = securityContext?.capabilities ?? {};
        const forbidden = add.filter((capability) => capability !== "NET_BIND_SERVICE");
        if (!drop.includes("ALL")) keeping.push(name);
        if (forbidden.length > 0) adding.push(name);
        for (const capability of forbidden) added.add(capability);
      }
      const details = [
        ...(keeping.length > 0 ? [`${namedContainers(keeping)} must set securityContext.capabilities.drop=["ALL"]`] : []),
        ...(adding.length > 0
          ? [`${namedContainers(adding)} must not include ${quoted([...added].sort())} in securityContext.capabilities.add`]
          : []),
      ];
      return details.length === 0 ? undefined : { reason: "unrestricted capabilities", detail: details.join("; ") };
    },
  },
  {
    id: "restrictedVolumes",
    level: "restricted",
    since: 0,
    replaces: ["hostPathVolumes"],
    run(_metadata, { volumes = [] }) {
      const types = new Set<string>();
      const bad = volumes.filter((volume) => {
        const { name: _, ...given } = volume;
        const sources = keysOf(given).filter((key) => given[key] !== undefined);
        if (sources.length === 0 || sources.some((source) => restrictedVolumeTypes.has(source))) return false;
        types.add(sources[0]!);
        return true;
      });
      if (bad.length === 0) return undefined;
      const names = quoted(bad.map(({ name }) => name));
      return {
        reason: "restricted volume types",
        detail: `${plural("volume", "volumes", bad.length)} ${names} ${plural("uses", "use", bad.length)} ${plural("restricted volume type", "restricted volume types", types.size)} ${quoted([...types].sort())}`,
      };
    },
  },
  {
    id: "runAsNonRoot",
    level: "restricted",
    since: 0,
    run(_metadata, spec) {
      const reason = "runAsNonRoot != true";
      const pod = spec.securityContext?.runAsNonRoot;
      const setters = pod === false ? ["pod"] : [];
      const explicit = badContainers(spec, (context) => context?.runAsNonRoot === false);
      if (explicit.length > 0) setters.push(namedContainers(explicit));
      if (setters.length > 0)
        return { reason, detail: `${setters.join(" and ")} must not set securityContext.runAsNonRoot=false` };
      if (pod === true) return undefined;
      const implicit = badContainers(spec, (context) => context?.runAsNonRoot === undefined);
      if (implicit.length === 0) return undefined;
      return { reason, detail: `pod or ${namedContainers(implicit)} must set securityContext.runAsNonRoot=true` };
    },
  },
  {
    id: "runAsUser",
    level: "restricted",
    since: 23,
    run(_metadata, spec) {
      const setters = spec.securityContext?.runAsUser === 0 ? ["pod"] : [];
      const bad = badContainers(spec, (context) => context?.runAsUser === 0);
      if (bad.length > 0) setters.push(namedContainers(bad));
      return setters.length === 0
        ? undefined
        : { reason: "runAsUser=0", detail: `${setters.join(" and ")} must not set runAsUser=0` };
    },
  },
  {
    id: "seccompProfile_restricted",
    level: "restricted",
    since: 19,
    replaces: ["seccompProfile_baseline"],
    run(_metadata, spec) {
      const reason = "seccompProfile";
      const isGood = (type: string): boolean => type === "RuntimeDefault" || type === "Localhost";
      const values = new Set<string>();
      const pod = spec.securityContext?.seccompProfile?.type;
      const setters: string[] = [];
      const note = (type: string | undefined): boolean => {
        if (type === undefined || isGood(type)) return false;
        values.add(type);
        return true;
      };
      if (note(pod)) setters.push("pod");
      const explicit = badContainers(spec, (context) => note(context?.seccompProfile?.type));
      if (explicit.length > 0) setters.push(namedContainers(explicit));
      if (setters.length > 0) {
        return {
          reason,
          detail: `${setters.join(" and ")} must not set securityContext.seccompProfile.type to ${quoted([...values].sort())}`,
        };
      }
      if (pod !== undefined) return undefined;
      const implicit = badContainers(spec, (context) => context?.seccompProfile === undefined);
      if (implicit.length === 0) return undefined;
      return {
        reason,
        detail: `pod or ${namedContainers(implicit)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
      };
    },
  },
];
