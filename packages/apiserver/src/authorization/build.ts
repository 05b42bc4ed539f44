/** The authorizers of --authorization-mode in the order given there. Source: pkg/kubeapiserver/authorizer/config.go New */
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import { alwaysAllow, alwaysDeny, privilegedGroups } from "./always.ts";
import type { Authorizer, PolicyRule, RuleResolver } from "./authorizer.ts";
import { informedNodeGraph, nodeAuthorizer } from "./node.ts";
import { informedRbacPolicy, rbac } from "./rbac.ts";
import { newRuleResolver } from "./rule-resolver.ts";
import { unionAuthorizer } from "./union.ts";

export interface AuthorizationOptions {
  modes: readonly string[];
  informers: InformerFactory;
  nodeRules: readonly PolicyRule[];
}

export interface Authorization {
  readonly authorize: Authorizer;
  readonly resolveRules: RuleResolver;
  /** The policy is in memory. */
  synced(): boolean;
}

/** @throws Error for a mode that is not built; `config.ts` refuses those before. */
export function buildAuthorization({ modes, informers, nodeRules }: AuthorizationOptions): Authorization {
  const authorizers: Authorizer[] = [privilegedGroups];
  const resolvers: RuleResolver[] = [];
  const synced: (() => boolean)[] = [];
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
        const graph = informedNodeGraph(informers);
        authorizers.push(nodeAuthorizer(graph, nodeRules));
        resolvers.push(async () => ({
          rules: [],
          incomplete: true,
          errors: [new Error("node authorizer does not support user rule resolution")],
        }));
        synced.push(() => graph.synced);
        break;
      }
      case "RBAC": {
        const policy = informedRbacPolicy(informers);
        const resolver = newRuleResolver(policy);
        authorizers.push(rbac(resolver));
        resolvers.push(resolver.resolve);
        synced.push(() => policy.synced);
        break;
      }
      default:
        throw new Error(`unknown authorization mode ${mode} specified`);
    }
  }
  return {
    authorize: unionAuthorizer(authorizers),
    resolveRules: unionResolver(resolvers),
    synced: () => synced.every((isSynced) => isSynced()),
  };
}

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
