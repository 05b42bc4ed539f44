import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import { age, ageColumn, nameColumn, text } from "../../cells.ts";
import type { Ages, TableColumns } from "../../generic/strategy.ts";

/** Source: kube-aggregator pkg/registry/apiservice/etcd/etcd.go */
export const apiServiceTable: TableColumns = {
  columns: [
    nameColumn,
    text("Service", "The reference to the service that hosts this API endpoint."),
    text("Available", "Whether this service is available."),
    ageColumn,
  ],
  cells(object: Unstructured, ages: Ages) {
    const service = object as unknown as APIService;
    const reference = service.spec?.service;
    const condition = (service.status?.conditions ?? []).find((c) => c.type === "Available");
    const available =
      condition === undefined
        ? "Unknown"
        : condition.status === "True"
          ? "True"
          : `${condition.status} (${condition.reason ?? ""})`;
    return [
      object.metadata.name ?? "",
      reference ? `${reference.namespace}/${reference.name}` : "Local",
      available,
      age(object, ages),
    ];
  },
};
