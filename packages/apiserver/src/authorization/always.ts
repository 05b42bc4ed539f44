/** Source: k8s.io/apiserver pkg/authorization/authorizerfactory/builtin.go */
import { privilegedGroup } from "../request/user-names.ts";
import type { Authorizer } from "./authorizer.ts";

export const alwaysAllow: Authorizer = () => ({ decision: "allow" });
export const alwaysDeny: Authorizer = () => ({ decision: "no-opinion", reason: "Everything is forbidden." });

/** system:masters may do anything, also while the policy in the store cannot be read yet. */
export const privilegedGroups: Authorizer = ({ user }) =>
  user.groups.includes(privilegedGroup) ? { decision: "allow" } : { decision: "no-opinion" };
