/** The Kubernetes release that is implemented: /version, --version, the node status, metrics and user agents. Clients depend on it. */
export const kubernetesRelease = { major: "1", minor: "23", gitVersion: "v1.23.0" } as const;

/** The version of this build (semantic versioning, see docs/releasing.md); the same as in package.json. */
export const coxswainVersion = "0.1.0";
