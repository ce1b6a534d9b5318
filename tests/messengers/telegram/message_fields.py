"""The optional fields of the Bot API's object Message, for tests that add each of them to a message."""

from collections.abc import Callable
from typing import Any

USER = {"id": 5, "is_bot": False, "first_name": "Q"}
ROBOT = {"id": 6, "is_bot": True, "first_name": "R", "username": "r_bot"}
CHAT = {"id": -100, "type": "channel", "title": "C"}
_FIELDS = """
message_thread_id direct_messages_topic from sender_chat sender_boost_count sender_business_bot sender_tag
guest_query_id business_connection_id forward_origin is_topic_message is_automatic_forward reply_to_message
external_reply quote reply_to_story reply_to_checklist_task_id reply_to_poll_option_id via_bot guest_bot_caller_user
guest_bot_caller_chat edit_date has_protected_content is_from_offline is_paid_post media_group_id author_signature
paid_star_count link_preview_options suggested_post_info effect_id animation audio document live_photo paid_media
photo sticker story video video_note voice caption caption_entities show_caption_above_media has_media_spoiler
checklist contact dice game poll venue location new_chat_members left_chat_member chat_owner_left chat_owner_changed
new_chat_title new_chat_photo delete_chat_photo group_chat_created supergroup_chat_created channel_chat_created
message_auto_delete_timer_changed migrate_to_chat_id migrate_from_chat_id pinned_message invoice successful_payment
refunded_payment users_shared chat_shared gift unique_gift gift_upgrade_sent connected_website write_access_allowed
passport_data proximity_alert_triggered boost_added chat_background_set checklist_tasks_done checklist_tasks_added
direct_message_price_changed forum_topic_created forum_topic_edited forum_topic_closed forum_topic_reopened
general_forum_topic_hidden general_forum_topic_unhidden giveaway_created giveaway giveaway_winners giveaway_completed
managed_bot_created paid_message_price_changed poll_option_added poll_option_deleted suggested_post_approved
suggested_post_approval_failed suggested_post_declined suggested_post_paid suggested_post_refunded
video_chat_scheduled video_chat_started video_chat_ended video_chat_participants_invited web_app_data rich_message
receiver_user ephemeral_message_id community_chat_added community_chat_removed community_chat_joined forward_date
forward_from forward_from_chat forward_from_message_id forward_sender_name forward_signature user_shared
of_the_next_version
"""
OPTIONAL = _FIELDS.split()
"""The optional fields of Message in Bot API 10, except the text, its entities and the buttons."""
VALUES: dict[str, Any] = {
    "message_thread_id": 7,
    "from": ROBOT,
    "is_topic_message": True,
    "reply_to_message": {"message_id": 4, "date": 1, "chat": CHAT, "from": USER, "text": "Quiz!"},
    "external_reply": {"origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Q"}},
    "edit_date": 1795214644,
    "link_preview_options": {"url": "https://example.org/", "show_above_text": True},
    "contact": {"phone_number": "49", "first_name": "Q"},
    "business_connection_id": "b1",
}
_KINDS = """
mention hashtag cashtag bot_command url email phone_number bold italic underline strikethrough spoiler blockquote
expandable_blockquote pre text_link text_mention custom_emoji date_time of_the_next_version
"""
ENTITIES = _KINDS.split()
"""The kinds of MessageEntity."""


def adding(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that adds a field to a message."""
    return lambda message: {**message, name: VALUES.get(name, {"some": ["value", 1]})}
