/** Source: k8s.io/apiserver pkg/authorization/authorizerfactory/builtin.go */
import { privilegedGroup } from "../request/user-names.ts";
import type { Authorizer } from "./authorizer.ts";

export const alwaysAllow: Authorizer = () => ({ decision: "allow" });
export const alwaysDeny: Authorizer = () => ({ decision: "no-opinion", reason: "Everything is forbidden." });

/** Allows system:masters everything, independent of the stored policy, which may not be loaded yet. */
export const privilegedGroups: Authorizer = ({ user }) =>
  user.groups.includes(privilegedGroup) ? { decision: "allow" } : { decision: "no-opinion" };
