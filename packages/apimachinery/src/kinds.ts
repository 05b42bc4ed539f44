/** The types of objects, by group and version: `AppsV1.Deployment`. */
export type * as AdmissionregistrationV1 from "./objects/schema/kinds/admissionregistration/v1.ts";
export type * as ApiextensionsV1 from "./objects/schema/kinds/apiextensions/v1.ts";
export type * as AppsV1 from "./objects/schema/kinds/apps/v1.ts";
export type * as AutoscalingV2 from "./objects/schema/kinds/autoscaling/v2.ts";
export type * as BatchV1 from "./objects/schema/kinds/batch/v1.ts";
export type * as CoordinationV1 from "./objects/schema/kinds/coordination/v1.ts";
export type * as CoreV1 from "./objects/schema/kinds/core/v1.ts";
export type * as NetworkingV1 from "./objects/schema/kinds/networking/v1.ts";
export type * as PolicyV1 from "./objects/schema/kinds/policy/v1.ts";
export type * as RbacV1 from "./objects/schema/kinds/rbac/v1.ts";
