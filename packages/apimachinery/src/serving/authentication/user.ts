/** An authenticated user. `extra` values are lists, as in authentication.k8s.io/v1 UserInfo. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Well-known users and groups. Source: k8s.io/apiserver pkg/authentication/user/user.go */
export const anonymousName = "system:anonymous";
export const allAuthenticated = "system:authenticated";
export const allUnauthenticated = "system:unauthenticated";
export const privilegedGroup = "system:masters";
