/** Names of pod security settings other than security contexts, for admission, validation and the kubelet. */

/** Annotation with the seccomp profile of a pod. */
export const seccompPod = "seccomp.security.alpha.kubernetes.io/pod";
/** Prefix of the annotations with the profile of a container. */
export const seccompContainer = "container.seccomp.security.alpha.kubernetes.io/";
/** Prefix of the annotations with the profile of a container. */
export const appArmorContainer = "container.apparmor.security.beta.kubernetes.io/";

/** Namespaced sysctls that cannot affect other pods. */
export const safeSysctls: ReadonlySet<string> = new Set([
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_unprivileged_port_start",
]);
