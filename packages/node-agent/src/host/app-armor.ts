import { readFile } from "node:fs/promises";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { appArmorContainer } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import { containersOf, type NodePod } from "../pod/pod.ts";

/** Whether this machine can enforce the AppArmor profiles of Pods. */
export interface AppArmor {
  readonly enabled: boolean;
  /** @returns why a Pod with profiles cannot be run here; undefined when it can, or has none */
  refusal(pod: NodePod): Promise<string | undefined>;
}

const unconfined = "unconfined";
const local = "localhost/";

/**
 * @param gate feature gate AppArmor
 * @param files the kernel's files; replaced in tests
 * Source: pkg/security/apparmor/validate.go
 */
export async function readAppArmor(
  gate: boolean,
  files = { enabled: "/sys/module/apparmor/parameters/enabled", profiles: "/sys/kernel/security/apparmor/profiles" },
): Promise<AppArmor> {
  const kernel = await readFile(files.enabled, "utf8").catch(() => "");
  const problem = !gate
    ? "AppArmor disabled by feature-gate"
    : kernel.startsWith("Y")
      ? undefined
      : "AppArmor is not enabled on the host";
  return {
    enabled: problem === undefined,
    async refusal(pod) {
      const annotations = Object.entries(pod.metadata.annotations ?? {});
      if (!annotations.some(([name, profile]) => name.startsWith(appArmorContainer) && profile !== unconfined)) return undefined;
      if (problem !== undefined) return problem;
      const names = [...containersOf(pod)].map(({ container }) => container.name);
      const profiles = names.flatMap((name) => {
        const profile = pod.metadata.annotations?.[appArmorContainer + name] ?? "";
        return profile.startsWith(local) ? [profile.slice(local.length)] : [];
      });
      if (profiles.length === 0) return undefined;
      let loaded: ReadonlySet<string>;
      try {
        loaded = loadedProfiles(await readFile(files.profiles, "utf8"));
      } catch (err) {
        return `could not read loaded profiles: ${messageOf(err)}`;
      }
      const missing = profiles.find((profile) => !loaded.has(profile));
      return missing === undefined ? undefined : `profile ${JSON.stringify(missing)} is not loaded`;
    },
  };
}

/** Names in the kernel's list, whose lines are `name (mode)`; a name may contain blanks. */
function loadedProfiles(text: string): Set<string> {
  return new Set(
    text.split("\n").flatMap((line) => {
      const end = line.lastIndexOf(" (");
      return end < 0 ? [] : [line.slice(0, end)];
    }),
  );
}
