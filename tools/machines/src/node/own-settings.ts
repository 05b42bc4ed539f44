/** Reconstructs the settings that a control plane machine was set up with, for commands that do not repeat them. Pure. */
import type { Document } from "../config/fields.ts";
import type { FlagMap } from "../config/settings.ts";
import { flagsIn } from "../host/units.ts";

type Init = Document<"InitConfiguration">;
type OwnSettings = Required<Pick<Init, "nodeRegistration" | "localAPIEndpoint">>;

/** Flags that are derived from separate settings, or from the machine. */
const derived = new Set([
  "container-runtime",
  "container-runtime-endpoint",
  "cgroup-driver",
  "hostname-override",
  "register-with-taints",
  "tls-cert-file",
  "tls-private-key-file",
]);

/**
 * @param serverFlags of the API server; empty: it was not set up yet
 * @param kubeletEnvironment `kubeadm-flags.env`; undefined: the kubelet was not set up yet
 */
export function ownSettings(serverFlags: FlagMap, kubeletEnvironment: string | undefined): OwnSettings {
  const { "advertise-address": advertiseAddress, "secure-port": port } = serverFlags;
  return {
    localAPIEndpoint: {
      ...(advertiseAddress !== undefined && { advertiseAddress }),
      ...(port !== undefined && { bindPort: Number(port) }),
    },
    nodeRegistration: kubeletEnvironment === undefined ? {} : registrationOf(environmentFlags(kubeletEnvironment)),
  };
}

function registrationOf(flags: FlagMap): OwnSettings["nodeRegistration"] {
  const { "hostname-override": name, "container-runtime-endpoint": criSocket, "register-with-taints": taints = "" } = flags;
  return {
    ...(name !== undefined && { name }),
    ...(criSocket !== undefined && { criSocket }),
    taints: taints.split(",").flatMap((text) => {
      const [, key, value, effect] = /^([^=:]+)=?([^:]*):(.+)$/.exec(text) ?? [];
      return key === undefined || effect === undefined ? [] : [{ key, ...(value && { value }), effect }];
    }),
    kubeletExtraArgs: Object.fromEntries(Object.entries(flags).filter(([flag]) => !derived.has(flag))),
  };
}

/** Flags in `KUBELET_KUBEADM_ARGS="--name=value …"`. */
const environmentFlags = (text: string): FlagMap =>
  flagsIn((/"(.*)"/s.exec(text)?.[1] ?? "").replaceAll(/\\([\\"$`])/g, "$1").split(/ (?=--)/));
