import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import { serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

const namespace = "kube-system";

/**
 * Provides tokens of a controller's service account in kube-system, which is created if it does not exist. A token is
 * renewed after 80 % of its lifetime, and when the server refuses it: the clock may have jumped, the signing key may have been rotated, or
 * the account may have been recreated.
 * Source: k8s.io/controller-manager pkg/clientbuilder, DynamicControllerClientBuilder
 */
export function serviceAccountTokens(
  client: Client,
  name: string,
  clock: Clock,
): (refused: string | undefined) => Promise<string> {
  let current: { token: string; renewAt: number } | undefined;
  let checking: Promise<void> | undefined;

  const check = async (): Promise<void> => {
    const requestedAt = clock.now();
    const request = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { audiences: [], expirationSeconds: 3600 },
    };
    const create = () => client.create<TokenRequest>(serviceAccounts, request, { namespace, name, subresource: "token" });
    let answer: TokenRequest;
    try {
      answer = await create();
    } catch (err) {
      if (!isNotFound(err)) throw new Error(`cannot get a token of service account ${namespace}/${name}`, { cause: err });
      await client.create(serviceAccounts, { metadata: { namespace, name } }).catch((failure) => {
        if (!isAlreadyExists(failure)) throw failure;
      });
      answer = await create();
    }
    const { token = "", expirationTimestamp = "" } = answer.status ?? {};
    const expiresAt = parseTime(expirationTimestamp) ?? requestedAt + 3_600_000;
    current = { token, renewAt: requestedAt + (expiresAt - requestedAt) * 0.8 };
  };
  return async (refused) => {
    if (current === undefined || current.token === refused || clock.now() >= current.renewAt) {
      checking ??= check().finally(() => {
        checking = undefined;
      });
      await checking;
    }
    return current?.token ?? "";
  };
}

interface TokenRequest {
  readonly spec: object;
  readonly status?: { token?: string; expirationTimestamp?: string };
}
