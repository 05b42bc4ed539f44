import type { InProcessDaemon } from "@coxswain/apimachinery/flags/in-process";
import { newControllerManager } from "@coxswain/controller-manager";
import type { Scratch } from "./scratch.ts";

/**
 * kube-controller-manager without leader election, because there is only one instance.
 * @param names as in `--controllers` @throws Error for an unknown controller
 */
export function newControllers(names: readonly string[], scratch: Scratch): InProcessDaemon {
  return newControllerManager([
    `--controllers=${names.join(",")}`,
    "--leader-elect=false",
    "--kube-api-qps=100000",
    "--kube-api-burst=100000",
    `--service-account-private-key-file=${scratch.serviceAccountKey}`,
  ]);
}
