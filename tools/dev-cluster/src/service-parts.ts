import type { Settings } from "./settings.ts";

/** The parts of coxswain-services that a cluster of one machine needs, when the user chooses none. */
const serviceParts = [
  "pod-network",
  "services",
  "dns",
  "metrics-api",
  "local-volumes",
  "load-balancers",
  "load-balancer-addresses",
];

/** True for `--enable` and `--disable`, which are not passed on: coxswain-services gets the resulting list of parts instead. */
export const choosesParts = (arg: string): boolean => /^--(?:enable|disable)=/.test(arg);

/** The parts of coxswain-services that run: those, with `enable=` and without `disable=` of `--coxswain-services-arg`; `*` is all. */
export function servicePartsOf({ extraArgs }: Pick<Settings, "extraArgs">): string[] {
  const chosen = (flag: string): string[] =>
    extraArgs["coxswain-services"]
      .filter((arg) => arg.startsWith(`--${flag}=`))
      .flatMap((arg) => arg.slice(flag.length + 3).split(","))
      .filter((name) => name !== "");
  const [enabled, disabled] = [chosen("enable"), new Set(chosen("disable"))];
  const kept = serviceParts.filter((name) => !disabled.has("*") && !disabled.has(name));
  return [...new Set([...kept, ...enabled])];
}
