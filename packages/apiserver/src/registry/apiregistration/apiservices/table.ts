import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import { age, tableOf } from "../../cells.ts";

/** Source: kube-aggregator pkg/registry/apiservice/etcd/etcd.go */
export const apiServiceTable = tableOf<APIService>("apiservices", (service, ages) => {
  const reference = service.spec?.service;
  const condition = (service.status?.conditions ?? []).find((c) => c.type === "Available");
  const available =
    condition === undefined
      ? "Unknown"
      : condition.status === "True"
        ? "True"
        : `${condition.status} (${condition.reason ?? ""})`;
  return [
    service.metadata.name ?? "",
    reference ? `${reference.namespace}/${reference.name}` : "Local",
    available,
    age(service, ages),
  ];
});
