"""A config of LiteLLM's proxy, imported as the tests share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from middleware import config
from middleware.cli.importers.litellm import Imported, from_litellm

SECRET = "sk-written-out-0123456789"
TWELVE = f"""
model_list:
  - model_name: sonnet
    litellm_params:
      model: anthropic/claude-sonnet-5-5
      api_key: os.environ/ANTHROPIC_API_KEY
      api_version: 2023-06-01
      max_tokens: 8192
      rpm: 10
  - model_name: "claude-*"
    litellm_params: {{model: "anthropic/claude-*", api_key: os.environ/ANTHROPIC_API_KEY}}
  - model_name: deepseek
    litellm_params: {{model: deepseek/deepseek-chat, api_key: {SECRET}, temperature: 0.2}}
  - model_name: "ollama/*"
    litellm_params: {{model: "ollama_chat/*", api_base: "http://localhost:11434/"}}
  - model_name: qwen
    litellm_params:
      model: ollama/qwen3:8b
      api_base: http://localhost:11434
      num_ctx: 16384
      keep_alive: 30m
  - model_name: gpt-4o
    litellm_params:
      model: gpt-4o
      timeout: 900
      stream_timeout: "30"
      max_retries: 1
      organization: org-1
    model_info: {{id: a, supports_vision: true}}
  - model_name: local.qwen
    litellm_params:
      model: openai/Qwen/Qwen3
      api_base: http://vllm.lan:8000/v1/chat/completions
      api_key: none
      extra_headers: {{X-Team: a, Authorization: Bearer tok-0123456789}}
      extra_body: {{top_k: 3}}
      additional_drop_params: [user]
  - model_name: llama
    litellm_params: {{model: groq/llama-3.3-70b}}
  - model_name: azure
    litellm_params:
      model: azure/gpt-deploy
      api_base: os.environ/AZURE_BASE
      api_version: "2024-10-21"
      api_key: os.environ/AZURE_KEY
  - model_name: bedrock
    litellm_params:
      model: bedrock/anthropic.claude-v3
      aws_region_name: us-east-1
      aws_access_key_id: os.environ/AWS_ACCESS_KEY_ID
      aws_secret_access_key: {SECRET}
  - model_name: anything/*
    litellm_params: {{model: "openrouter/*", api_key: os.environ/OPENROUTER_API_KEY}}
  - model_name: hosted
    litellm_params: {{model: hosted_vllm/m, api_base: os.environ/VLLM_BASE}}
litellm_settings: {{drop_params: true, num_retries: 3, request_timeout: 700, callbacks: [x]}}
router_settings:
  model_group_alias: {{gpt-4: gpt-4o, haiku: {{model: claude-haiku-5-5}}, nowhere: nothing}}
  fallbacks: [{{sonnet: [gpt-4o, deepseek]}}]
  routing_strategy: simple-shuffle
general_settings: {{master_key: os.environ/LITELLM_MASTER_KEY, database_url: x}}
"""
SET = {"AZURE_BASE": "https://a.openai.azure.com", "VLLM_BASE": "http://gpu:8000/v1"}


class Everything(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, name: str, default: Any = None) -> Any:
        return f"value-of-{name}"


def imported(text: str, environment: Mapping[str, str] = SET) -> Imported:
    found = from_litellm(text, "proxy.yaml", environment)
    config.parse(found.text, environment=Everything())  # whatever comes out is valid
    return found
