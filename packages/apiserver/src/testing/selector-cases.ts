/** Invalid label selector expressions, each with a different error, and the expected messages. */
export const wrongExpressions = {
  selector: {
    matchExpressions: [
      { key: "a b", operator: "In" },
      { key: "a", operator: "Exists", values: ["b"] },
      { key: "a", operator: "Like" },
    ],
  },
  /** @param path field path of the selector */
  want: (path: string): string[] => [
    `${path}.matchExpressions[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
    `${path}.matchExpressions[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
    `${path}.matchExpressions[1].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
    `${path}.matchExpressions[2].operator: Invalid value: "Like": not a valid selector operator`,
  ],
  /** The whole selector as quoted by upstream. */
  shown: `v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement{v1.LabelSelectorRequirement{Key:"a b", Operator:"In", Values:[]string(nil)}, v1.LabelSelectorRequirement{Key:"a", Operator:"Exists", Values:[]string{"b"}}, v1.LabelSelectorRequirement{Key:"a", Operator:"Like", Values:[]string(nil)}}}`,
};
