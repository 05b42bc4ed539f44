import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

interface Named {
  name?: string;
}

/**
 * The container of a request: the named one, or the only one.
 * @throws 400 with the names to choose from
 * Source: pkg/registry/core/pod/strategy.go LogLocation, streamLocation, getContainerNames
 */
export function chooseContainer(pod: Pod, requested: string): string {
  const names = (list: readonly Named[] | undefined): string => (list ?? []).map((container) => container.name ?? "").join(" ");
  const { containers = [], initContainers = [], ephemeralContainers = [] } = pod.spec;
  const name = pod.metadata.name ?? "";
  if (requested !== "") {
    if ([...containers, ...initContainers, ...ephemeralContainers].some((container) => container.name === requested))
      return requested;
    throw badRequest(`container ${requested} is not valid for pod ${name}`);
  }
  if (containers.length === 1) return containers[0]?.name ?? "";
  if (containers.length === 0) throw badRequest(`a container name must be specified for pod ${name}`);
  let message = `a container name must be specified for pod ${name}, choose one of: [${names(containers)}]`;
  if (initContainers.length > 0) message += ` or one of the init containers: [${names(initContainers)}]`;
  if (ephemeralContainers.length > 0) message += ` or one of the ephemeral containers: [${names(ephemeralContainers)}]`;
  throw badRequest(message);
}
