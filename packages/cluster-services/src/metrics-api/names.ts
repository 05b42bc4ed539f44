export const serviceNamespace = "kube-system";
export const serviceName = "coxswain-metrics";
export const apiServiceName = "v1beta1.metrics.k8s.io";
