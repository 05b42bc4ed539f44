/** What validation of pods depends on besides the pod. */
export interface PodValidationOptions {
  /** --allow-privileged. */
  readonly allowPrivileged: boolean;
  readonly featureEnabled: (gate: string) => boolean;
}
