import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";

export function defaultApiService(object: KubeObject): void {
  const service = (object as APIService).spec?.service;
  if (service) service.port ??= 443;
}
