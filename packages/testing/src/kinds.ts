/** Object types by group and version: `AppsV1.Deployment`. */
export type * from "@coxswain/apimachinery/kinds";
