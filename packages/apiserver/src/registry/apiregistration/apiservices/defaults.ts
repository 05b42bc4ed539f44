import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";

export function defaultApiService(object: APIService): void {
  const service = object.spec?.service;
  if (service) service.port ??= 443;
}
