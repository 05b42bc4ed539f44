import type { ClusterRole } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import type { PartRights } from "../part.ts";
import { apiServiceName, serviceName } from "./names.ts";

const read = ["list", "watch"];

/** Who may view a namespace may see what its pods use. Source: metrics-server's manifest */
const metricsReader: ClusterRole = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: {
    name: "system:aggregated-metrics-reader",
    labels: {
      "rbac.authorization.k8s.io/aggregate-to-admin": "true",
      "rbac.authorization.k8s.io/aggregate-to-edit": "true",
      "rbac.authorization.k8s.io/aggregate-to-view": "true",
    },
  },
  rules: [{ apiGroups: ["metrics.k8s.io"], resources: ["nodes", "pods"], verbs: ["get", "list", "watch"] }],
};

export const metricsApiRights: PartRights = {
  cluster: [
    { apiGroups: [""], resources: ["nodes", "pods"], verbs: read },
    { apiGroups: [""], resources: ["nodes/metrics"], verbs: ["get"] },
    { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
    { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
    { apiGroups: ["apiregistration.k8s.io"], resources: ["apiservices"], verbs: ["create"] },
    {
      apiGroups: ["apiregistration.k8s.io"],
      resources: ["apiservices"],
      resourceNames: [apiServiceName],
      verbs: ["get", "update"],
    },
  ],
  namespaced: {
    "kube-system": [
      {
        apiGroups: [""],
        resources: ["configmaps"],
        resourceNames: ["extension-apiserver-authentication"],
        verbs: ["get", "list", "watch"],
      },
      { apiGroups: [""], resources: ["services", "endpoints"], verbs: ["create"] },
      { apiGroups: [""], resources: ["services"], resourceNames: [serviceName], verbs: ["get"] },
      { apiGroups: [""], resources: ["endpoints"], resourceNames: [serviceName], verbs: ["get", "update"] },
    ],
  },
  others: [metricsReader],
};
