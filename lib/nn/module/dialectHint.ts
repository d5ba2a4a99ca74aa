/** Guesses from its keys which code a state dict comes from, for error messages. */

/**
 * Key patterns that identify each dialect. A key counts once for every dialect with a matching
 * pattern; patterns that several dialects share (`norm.weight`, `encoder.layers.0`) are left out.
 */
const dialects: readonly { name: string; marks: readonly RegExp[] }[] = [
  {
    name: 'seed 000',
    marks: [
      /(^|\.)linear_list\.\d+\./,
      /(^|\.)layer_norm\.[kb]$/,
      /(^|\.)[kb]$/,
      /(^|\.)linear_[12]\./,
    ],
  },
  {
    name: 'seed 001',
    marks: [
      /(^|\.)linears\.\d+\./,
      /(^|\.)[ab]_2$/,
      /(^|\.)w_[12]\./,
      /(^|\.)src_embed\./,
      /(^|\.)tgt_embed\./,
    ],
  },
  {
    name: 'seed 002',
    marks: [/(^|\.)fc_[QKV]\./, /(^|\.)out_fc\./, /(^|\.)embed\.weight$/, /(^|\.)fc\.[02]\./],
  },
  {
    name: 'torch.nn.Transformer',
    marks: [
      /(^|\.)in_proj_(weight|bias)$/,
      /(^|\.)(self_attn|multihead_attn)\.out_proj\./,
      /(^|\.)layers\.\d+\.linear[12]\./,
      /(^|\.)layers\.\d+\.norm[123]\./,
    ],
  },
  {
    name: 'Hugging Face transformers',
    marks: [
      // BART, Marian and similar models; Llama and similar models
      /_attn\.[qkv]_proj\./,
      /(^|\.)(self_attn|encoder_attn|final)_layer_norm\./,
      /(^|\.)layers\.\d+\.fc[12]\./,
      /(^|\.)embed_(tokens|positions)\./,
      /(^|\.)mlp\.(gate|up|down)_proj\./,
      /(^|\.)(input|post_attention)_layernorm\./,
      // BERT
      /\.attention\.self\.(query|key|value)\./,
      /\.(attention\.output|output|embeddings)\.LayerNorm\./,
      /\.(intermediate|attention\.output|output)\.dense\./,
      /(^|\.)embeddings\.\w+_embeddings\./,
      // T5
      /\.(SelfAttention|EncDecAttention|DenseReluDense)\./,
      // GPT-2
      /(^|\.)h\.\d+\.(attn|mlp|ln_[12])\./,
      /(^|\.)(wte|wpe)\.weight$/,
    ],
  },
];

/**
 * The dialect that matches the most keys: `'seed 000'`, `'seed 001'`, `'seed 002'`,
 * `'torch.nn.Transformer'` or `'Hugging Face transformers'`; null if no key matches or two dialects
 * tie. Prefixes such as `module.` do not matter.
 *
 * @param keys of a state dict
 */
export function dialectOf(keys: Iterable<string>): string | null {
  const names = [...keys];
  let best: string | null = null;
  let most = 0;
  for (const { name, marks } of dialects) {
    const count = names.filter((key) => marks.some((mark) => mark.test(key))).length;
    if (count === most) best = null;
    if (count > most) [best, most] = [name, count];
  }
  return best;
}

/** Names of a norm's scale and shift, where they are used, and the `makeModel` option for them. */
const norms = [
  { scale: 'a_2', shift: 'b_2', whose: 'seed 001', option: 'no option norm' },
  { scale: 'k', shift: 'b', whose: 'seed 000', option: '{ norm: seed000.norm }' },
  {
    scale: 'weight',
    shift: 'bias',
    whose: 'torch.nn.LayerNorm',
    option: '{ norm: seed002.norm }',
  },
] as const;

/**
 * What to do if the norms in a state dict have other names than the module's; null if the names are
 * the same or cannot be determined.
 *
 * @param missing keys of the module that the state dict lacks
 * @param unexpected keys of the state dict that the module lacks
 */
export function normHint(missing: readonly string[], unexpected: readonly string[]): string | null {
  const [own, given] = [normsOf(missing), normsOf(unexpected)];
  for (const here of norms) {
    for (const there of norms) {
      if (here === there) continue;
      // Other layers have `weight` and `bias` too: they count only where the module has a norm.
      const place = [...(own.get(here.scale) ?? [])].find(
        (prefix) => given.get(there.scale)?.has(prefix) === true,
      );
      const elsewhere =
        here.scale !== 'weight' &&
        there.scale !== 'weight' &&
        own.has(here.scale) &&
        given.has(there.scale);
      if (place === undefined && !elsewhere) continue;
      const names = `names: '${there.scale}/${there.shift}'`;
      return (
        `the norms are named ${there.scale}, ${there.shift} in the state dict, as in ` +
        `${there.whose}, and ${here.scale}, ${here.shift} in the module: create the model with ` +
        `${there.option} for ${there.whose}'s norm, or with { norm: { ${names} } } for its names ` +
        `only (LayerNorm: { names: { scale: '${there.scale}', shift: '${there.shift}' } }); ` +
        'the definitions differ, see LayerNorm'
      );
    }
  }
  return null;
}

/** For each name of a scale, the prefixes under which both scale and shift exist. */
function normsOf(keys: readonly string[]): Map<string, Set<string>> {
  const all = new Set(keys);
  const found = new Map<string, Set<string>>();
  for (const { scale, shift } of norms) {
    const prefixes = keys.flatMap((key) => {
      const prefix = key.slice(0, key.length - scale.length);
      const isScale = key.endsWith(scale) && (prefix === '' || prefix.endsWith('.'));
      return isScale && all.has(prefix + shift) ? [prefix] : [];
    });
    if (prefixes.length > 0) found.set(scale, new Set(prefixes));
  }
  return found;
}
