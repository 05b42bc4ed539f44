import type { ControllerContext, Runnable } from "../controller-context.ts";

/**
 * Controllers that need a cloud provider, none of which is built in. As in upstream without a provider, they log the
 * reason and are skipped; with `--cloud-provider=external` they run in the cloud-controller-manager.
 * Source: cmd/kube-controller-manager/app/core.go
 */
export function newServiceLoadBalancerController({ log }: ControllerContext): Runnable | undefined {
  log.error("Failed to start service controller: WARNING: no cloud provider provided, services of type LoadBalancer will fail");
  return undefined;
}

export function newRouteController({ config, log }: ControllerContext): Runnable | undefined {
  const { configureRoutes } = config.cloud;
  const allocates = config.nodeIpam.ranges.length > 0;
  if (!allocates || !configureRoutes)
    log.info(
      `Will not configure cloud provider routes for allocate-node-cidrs: ${allocates}, configure-cloud-routes: ${configureRoutes}.`,
    );
  else log.warn("configure-cloud-routes is set, but no cloud provider specified. Will not configure cloud provider routes.");
  return undefined;
}

export function newCloudNodeLifecycleController({ log }: ControllerContext): Runnable | undefined {
  log.error("failed to start cloud node lifecycle controller: no cloud provider provided");
  return undefined;
}

/** Names of these controllers in `--controllers`. */
export const cloudControllers: readonly string[] = ["service", "route", "cloud-node-lifecycle"];
