import type { ControllerManagerFlags } from "../flags.ts";

export interface CloudConfig {
  /** `--cloud-provider=external`: cloud controllers run in another program. */
  readonly external: boolean;
  readonly configureRoutes: boolean;
}

type Flags = Pick<ControllerManagerFlags, "cloud-provider" | "configure-cloud-routes" | "external-cloud-volume-plugin">;

/**
 * @param errors receives an error for any named provider, since none is built in
 * Source: cmd/kube-controller-manager/app/cloudproviders.go, k8s.io/cloud-provider plugins.go InitCloudProvider
 */
export function cloudConfigOf(flags: Flags, errors: string[]): CloudConfig {
  const external = flags["cloud-provider"] === "external";
  const wanted = external ? flags["external-cloud-volume-plugin"] : flags["cloud-provider"];
  if (wanted !== "") errors.push(`cloud provider could not be initialized: unknown cloud provider ${JSON.stringify(wanted)}`);
  return { external, configureRoutes: flags["configure-cloud-routes"] };
}
