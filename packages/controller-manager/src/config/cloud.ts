import type { SettingValues } from "@coxswain/apimachinery/flags/settings";
import type { cloudSettings } from "../flags/generic.ts";

export interface CloudConfig {
  /** `--cloud-provider=external`: cloud controllers run in another program. */
  readonly external: boolean;
  readonly configureRoutes: boolean;
}

/**
 * @param errors receives an error for any named provider, since none is built in
 * Source: cmd/kube-controller-manager/app/cloudproviders.go, k8s.io/cloud-provider plugins.go InitCloudProvider
 */
export function cloudConfigOf(
  { provider, volumePlugin, configureRoutes }: SettingValues<typeof cloudSettings>,
  errors: string[],
): CloudConfig {
  const external = provider === "external";
  const wanted = external ? volumePlugin : provider;
  if (wanted !== "") errors.push(`cloud provider could not be initialized: unknown cloud provider ${JSON.stringify(wanted)}`);
  return { external, configureRoutes };
}
