/** Why a container is not running: reason and message of `status.containerStatuses[].state.waiting`. */
export class ContainerError extends Error {
  /** `ErrImagePull`, `CreateContainerConfigError`, `CrashLoopBackOff`, … */
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ContainerError";
    this.reason = reason;
  }
}
