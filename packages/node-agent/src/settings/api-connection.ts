import { notNegative } from "@coxswain/apimachinery/flags/rules";
import { bool, int32, string } from "@coxswain/apimachinery/flags/types";
import { inFile, leaving } from "./notices.ts";

/** The connection to the API server: credentials, rates, events. */
export const apiConnectionSettings = {
  kubeconfig: string({
    flag: "kubeconfig",
    help: "Path to a kubeconfig file with authorization and location of the API server.",
  }),
  bootstrapKubeconfig: string({
    flag: "bootstrap-kubeconfig",
    help: "Path to a kubeconfig file to get a client certificate with, used when the file of --kubeconfig does not exist.",
  }),
  formerBootstrapKubeconfig: string({
    flag: "experimental-bootstrap-kubeconfig",
    deprecated: leaving,
    help: "The former name of --bootstrap-kubeconfig.",
  }),
  rotateCertificates: bool({
    flag: "rotate-certificates",
    field: "rotateCertificates",
    deprecated: leaving,
    help: "Renews client certificates from the API server when they come near their end.",
  }),
  contentType: string({
    flag: "kube-api-content-type",
    field: "contentType",
    default: "application/vnd.kubernetes.protobuf",
    deprecated: inFile,
    help: "Content type of requests to the API server.",
  }),
  eventBurst: int32({
    flag: "event-burst",
    field: "eventBurst",
    default: 10,
    deprecated: inFile,
    zeroIsDefault: "always",
    must: notNegative,
    help: "Burst of event records, while they stay below --event-qps on average. Must be >= 0. If 0, the default (10) is used.",
  }),
  eventQps: int32({
    flag: "event-qps",
    field: "eventRecordQPS",
    default: 5,
    deprecated: inFile,
    must: notNegative,
    help: "Limit of events a second. If 0, the default (5) is used.",
  }),
  kubeApiBurst: int32({
    flag: "kube-api-burst",
    field: "kubeAPIBurst",
    default: 10,
    deprecated: inFile,
    zeroIsDefault: "always",
    must: notNegative,
    help: "Burst of requests to the API server.",
  }),
  kubeApiQps: int32({
    flag: "kube-api-qps",
    field: "kubeAPIQPS",
    default: 5,
    deprecated: inFile,
    zeroIsDefault: "always",
    must: notNegative,
    help: "Requests a second to the API server.",
  }),
};
