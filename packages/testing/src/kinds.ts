/** The types of objects, by group and version: `AppsV1.Deployment`. */
export type * as AdmissionregistrationV1 from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
export type * as ApiextensionsV1 from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
export type * as AppsV1 from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
export type * as AutoscalingV2 from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
export type * as BatchV1 from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
export type * as CoordinationV1 from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
export type * as CoreV1 from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
export type * as NetworkingV1 from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
export type * as PolicyV1 from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
export type * as RbacV1 from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
