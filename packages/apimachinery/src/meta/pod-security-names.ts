/** What a pod's security is written with, beside its security contexts: for admission, validation and the node agent. */

/** Annotation that names the profile of a whole pod. */
export const seccompPod = "seccomp.security.alpha.kubernetes.io/pod";
/** Prefix of the annotations that name the profile of a container. */
export const seccompContainer = "container.seccomp.security.alpha.kubernetes.io/";
/** Prefix of the annotations that name the profile of a container. */
export const appArmorContainer = "container.apparmor.security.beta.kubernetes.io/";

/** Sysctls that cannot reach out of a pod's namespaces. */
export const safeSysctls: ReadonlySet<string> = new Set([
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_unprivileged_port_start",
]);
