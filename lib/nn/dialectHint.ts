/** Which code a state dict comes from, guessed from its keys, for messages of errors. */

/**
 * Parts of keys by which each dialect can be told. A key counts once for every dialect that has a
 * pattern for it; what several dialects share (`norm.weight`, `encoder.layers.0`) is in none.
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
      // BART, Marian and their kin; Llama and its kin
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
 * The dialect that most of the keys speak: `'seed 000'`, `'seed 001'`, `'seed 002'`,
 * `'torch.nn.Transformer'` or `'Hugging Face transformers'`; null when none or no single one has
 * the most keys. Prefixes such as `module.` do not matter.
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
