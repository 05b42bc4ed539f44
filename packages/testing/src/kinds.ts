/** The types of objects, by group and version: `AppsV1.Deployment`. */
export type * as AdmissionregistrationV1 from "@coxswain/apimachinery/schema/kinds/admissionregistration/v1";
export type * as ApiextensionsV1 from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
export type * as AppsV1 from "@coxswain/apimachinery/schema/kinds/apps/v1";
export type * as AutoscalingV2 from "@coxswain/apimachinery/schema/kinds/autoscaling/v2";
export type * as BatchV1 from "@coxswain/apimachinery/schema/kinds/batch/v1";
export type * as CoordinationV1 from "@coxswain/apimachinery/schema/kinds/coordination/v1";
export type * as CoreV1 from "@coxswain/apimachinery/schema/kinds/core/v1";
export type * as NetworkingV1 from "@coxswain/apimachinery/schema/kinds/networking/v1";
export type * as PolicyV1 from "@coxswain/apimachinery/schema/kinds/policy/v1";
export type * as RbacV1 from "@coxswain/apimachinery/schema/kinds/rbac/v1";
