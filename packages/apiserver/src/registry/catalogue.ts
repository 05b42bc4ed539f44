import { admissionRegistrationResources } from "./admissionregistration/group.ts";
import { apiExtensionsResources } from "./apiextensions/group.ts";
import { apiRegistrationResources } from "./apiregistration/group.ts";
import { appsResources } from "./apps/group.ts";
import { authenticationResources } from "./authentication/group.ts";
import { authorizationResources } from "./authorization/group.ts";
import { autoscalingResources } from "./autoscaling/group.ts";
import { batchResources } from "./batch/group.ts";
import { certificatesResources } from "./certificates/group.ts";
import type { CatalogueConfig } from "./config.ts";
import { coordinationResources } from "./coordination/group.ts";
import { coreResources, rangeAllocations } from "./core/group.ts";
import { discoveryResources } from "./discovery/group.ts";
import { eventsResources } from "./events/group.ts";
import { flowControlResources } from "./flowcontrol/group.ts";
import type { ResourceDefinition } from "./generic/resource.ts";
import { internalApiserverResources } from "./internal-apiserver/group.ts";
import { networkingResources } from "./networking/group.ts";
import { nodeResources } from "./node/group.ts";
import { policyResources } from "./policy/group.ts";
import { rbacResources } from "./rbac/group.ts";
import { schedulingResources } from "./scheduling/group.ts";
import { storageResources } from "./storage/group.ts";

export type { CatalogueConfig } from "./config.ts";

/**
 * All built-in resources. The resources of a group are declared in `<group>/group.ts`, their behaviour is in the folder with
 * the resource's name.
 */
export function builtInResources(config: CatalogueConfig): readonly ResourceDefinition[] {
  return [
    ...coreResources(config),
    ...admissionRegistrationResources(),
    ...apiExtensionsResources(),
    ...apiRegistrationResources(),
    ...appsResources(),
    ...authenticationResources(),
    ...authorizationResources(),
    ...autoscalingResources(),
    ...batchResources(),
    ...certificatesResources(),
    ...coordinationResources(),
    ...discoveryResources(),
    ...eventsResources(),
    ...flowControlResources(),
    ...internalApiserverResources(),
    ...networkingResources(),
    ...nodeResources(),
    ...policyResources(),
    ...rbacResources(config),
    ...schedulingResources(),
    ...storageResources(),
  ];
}

/** Resources that are stored but not served: allocated cluster IPs and node ports. */
export function internalResources(): readonly ResourceDefinition[] {
  return [rangeAllocations];
}
