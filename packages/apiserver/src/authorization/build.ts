/** Builds the authorizers of --authorization-mode, in that order. Source: pkg/kubeapiserver/authorizer/config.go New */
import type { ClientObserver } from "@coxswain/apimachinery/client/client";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import { newReviewWebhook } from "../authentication/review-webhook.ts";
import { nodeNameOf } from "../request/user-names.ts";
import { type AbacPolicy, abac, abacRules } from "./abac.ts";
import type { Authorizer, PolicyRule, RuleResolver } from "./authorizer.ts";
import { informedNodeGraph, nodeAuthorizer } from "./node.ts";
import { informedRbacPolicy, rbac } from "./rbac.ts";
import { newRuleResolver } from "./rule-resolver.ts";
import { alwaysAllow, alwaysDeny, privilegedGroups, unionAuthorizer } from "./union.ts";
import { webhookAuthorizer, webhookRules } from "./webhook.ts";

interface AuthorizationOptions {
  modes: readonly string[];
  /** Whether --runtime-config serves the group of RBAC; its informers never sync otherwise. */
  servesRbac: boolean;
  informers: InformerFactory;
  nodeRules: readonly PolicyRule[];
  featureEnabled: (gate: string) => boolean;
  /** From --authorization-policy-file, for mode ABAC. */
  abacPolicies: readonly AbacPolicy[];
  /** Options of mode Webhook. */
  webhook: AuthorizationWebhookOptions | undefined;
  clock: Clock;
  /** Aborts outgoing connections when the server stops. */
  signal: AbortSignal;
  /** Notified of each webhook call. */
  observer?: ClientObserver;
  /** Dialer for the webhook; undefined: direct. */
  connect?: Connect | undefined;
}

/** --authorization-webhook-*. */
export interface AuthorizationWebhookOptions {
  readonly config: ClientConfig;
  readonly version: string;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
}

interface Authorization {
  readonly authorize: Authorizer;
  readonly resolveRules: RuleResolver;
  /** Rules granted by RBAC, also when RBAC is not an enabled mode; undefined when its group is not served either. */
  readonly rbacRules: RuleResolver | undefined;
  /** True when the informers of the policy have synced. */
  synced(): boolean;
}

/** @throws Error for an unknown mode; `config.ts` rejects those earlier. */
export function buildAuthorization(options: AuthorizationOptions): Authorization {
  const { modes, informers, nodeRules, clock, signal } = options;
  const authorizers: Authorizer[] = [privilegedGroups];
  const resolvers: RuleResolver[] = [];
  const policy = options.servesRbac || modes.includes("RBAC") ? informedRbacPolicy(informers) : undefined;
  const rbacRules = policy && newRuleResolver(policy);
  const synced: (() => boolean)[] = policy === undefined ? [] : [() => policy.synced];
  for (const mode of modes) {
    switch (mode) {
      case "AlwaysAllow":
        authorizers.push(alwaysAllow);
        resolvers.push(allowsAll);
        break;
      case "AlwaysDeny":
        authorizers.push(alwaysDeny);
        break;
      case "Node": {
        const graph = informedNodeGraph(informers, { configSources: options.featureEnabled("DynamicKubeletConfig") });
        authorizers.push(nodeAuthorizer(graph, nodeRules));
        resolvers.push(nodeRulesOf);
        synced.push(() => graph.synced);
        break;
      }
      case "RBAC":
        authorizers.push(rbac(rbacRules!));
        resolvers.push(rbacRules!.resolve);
        break;
      case "ABAC":
        authorizers.push(abac(options.abacPolicies));
        resolvers.push(abacRules(options.abacPolicies));
        break;
      case "Webhook": {
        if (options.webhook === undefined) throw new Error("authorization-mode Webhook's authorization config file not passed");
        const review = newReviewWebhook({
          config: options.webhook.config,
          clock,
          signal,
          observer: options.observer,
          connect: options.connect,
        });
        authorizers.push(webhookAuthorizer({ ...options.webhook, review, now: () => clock.monotonic() }));
        resolvers.push(webhookRules);
        break;
      }
      default:
        throw new Error(`unknown authorization mode ${mode} specified`);
    }
  }
  return {
    authorize: unionAuthorizer(authorizers),
    resolveRules: unionResolver(resolvers),
    rbacRules: rbacRules?.resolve,
    synced: () => synced.every((isSynced) => isSynced()),
  };
}

/** Rules of kubelets; empty for all other users. */
const nodeRulesOf: RuleResolver = async (user) => {
  const isNode = nodeNameOf(user) !== undefined;
  const errors = isNode ? [new Error("node authorizer does not support user rule resolution")] : [];
  return { rules: [], incomplete: isNode, errors };
};

const allowsAll: RuleResolver = async () => ({
  rules: [
    { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
    { verbs: ["*"], nonResourceURLs: ["*"] },
  ],
  incomplete: false,
  errors: [],
});

function unionResolver(resolvers: readonly RuleResolver[]): RuleResolver {
  return async (user, namespace) => {
    const all = await Promise.all(resolvers.map((resolve) => resolve(user, namespace)));
    return {
      rules: all.flatMap(({ rules }) => rules),
      incomplete: all.some(({ incomplete }) => incomplete),
      errors: all.flatMap(({ errors }) => errors),
    };
  };
}
